/** Sends requests with `fetch` of the host, or with XMLHttpRequest to report the progress of an upload. */

/** Called with the number of bytes sent, including the form around a file. */
export type OnSent = (progress: { readonly sent: number; readonly total: number }) => void;

/** `fetch` with the URL as text. */
type Send = (url: string, init: RequestInit) => Promise<Response>;

/** The part of XMLHttpRequest that the client uses. */
interface HostRequest {
  readonly status: number;
  readonly response: ArrayBuffer;
  readonly upload: { onprogress: ((event: { readonly loaded: number; readonly total: number }) => void) | null };
  responseType: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getAllResponseHeaders(): string;
  send(body: unknown): void;
  abort(): void;
}

/** `fetch` of the host, or in browsers with `onSent` a replacement that reports the progress. */
export function hostFetch(onSent: OnSent | undefined): Send {
  // Read at each call, because a host may replace them.
  const { XMLHttpRequest } = globalThis as { readonly XMLHttpRequest?: new () => HostRequest };
  // fetch does not report progress.
  if (onSent !== undefined && XMLHttpRequest !== undefined) return telling(XMLHttpRequest, onSent);
  return (url, init) => globalThis.fetch(url, init);
}

function telling(XMLHttpRequest: new () => HostRequest, onSent: OnSent): Send {
  return (url, { method = 'GET', headers, body: sent, signal }) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const fail = (): void => reject(new TypeError(`${method} ${url} has no answer`));
      request.open(method, url);
      new Headers(headers).forEach((value, name) => request.setRequestHeader(name, value));
      request.responseType = 'arraybuffer';
      request.upload.onprogress = ({ loaded, total }) => onSent({ sent: loaded, total });
      request.onload = () => {
        const { status, response } = request;
        const body = response.byteLength === 0 ? null : response;
        resolve(new Response(body, { status, headers: headersIn(request.getAllResponseHeaders()) }));
      };
      [request.onerror, request.onabort] = [fail, fail];
      signal?.addEventListener('abort', () => request.abort());
      request.send(sent);
    });
}

function headersIn(text: string): Headers {
  const headers = new Headers();
  for (const [, name = '', value = ''] of text.matchAll(/^([^:\r\n]+): *(.*)\r$/gm)) headers.append(name, value);
  return headers;
}
