/** Sends requests to the service, retries them and turns every failure into a CouncilError. */
import type { Problem } from '../generated/schemas.js';
import { CouncilError, TooManyRequestsError, UnexpectedAnswerError, UnreachableError, refusalOf } from './errors.js';
import type { OnSent } from './host-fetch.js';
import { hostFetch } from './host-fetch.js';
import type { RetryOptions } from './retry.js';
import { openOutage } from './retry.js';
import type { ClientSystem } from './system.js';
import type { WebSocketClass } from './web-socket.js';

/** Longest silence of the service, in milliseconds. Its streams send comments every 15 s. */
export const SILENCE_MS = 60_000;
/** Time limit of the retries of a call, in milliseconds. */
const CALL_MS = 30_000;

export type Fetch = typeof globalThis.fetch;

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

type QueryValue = string | number | boolean | Date | readonly string[] | null | undefined;

export interface ApiRequest extends CallOptions {
  /** Default: GET. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path with each part escaped. */
  readonly path: string;
  /** The parameters without null and undefined. The items of a list are separated by commas. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  /** A form, or an object that is sent as JSON. */
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request may be sent more than once. Default: true for GET. */
  readonly isRepeatable?: boolean;
  /** Whether a browser finishes the request after its page closes; for bodies of at most 64 KiB. Default: false. */
  readonly keepalive?: boolean | undefined;
  /** Time limit of the answer, in milliseconds. Default: 60,000. */
  readonly patienceMs?: number;
  /** Called while the body is sent, where the host reports it. */
  readonly onSent?: OnSent | undefined;
}

/** An answer whose body has not been read. */
export interface OpenAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The body. @throws {UnreachableError} it is incomplete; or the reason of the signal */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Closes the connection. */
  close(): void;
}

export interface Reply<T> {
  readonly value: T;
  readonly headers: Headers;
}

export interface ApiOptions {
  /** Without trailing slash. */
  readonly url: string;
  readonly key: string | undefined;
  /** Default: that of the host. */
  readonly fetch: Fetch | undefined;
  readonly webSocket: WebSocketClass | undefined;
  readonly system: ClientSystem;
  readonly retry: RetryOptions;
}

/** Each call throws a CouncilError, or the reason of the signal. */
export interface Api extends Pick<ApiOptions, 'system' | 'retry' | 'url' | 'webSocket'> {
  /** Whether requests carry a key. */
  readonly isKeyed: boolean;
  /** Sends the request once. */
  open(request: ApiRequest): Promise<OpenAnswer>;
  /** The value of a JSON answer. Retries if it is safe. @param T its type in the OpenAPI document of the service */
  json<T>(request: ApiRequest): Promise<T>;
  /** The same with the headers of the answer. */
  reply<T>(request: ApiRequest): Promise<Reply<T>>;
}

export function openApi(options: ApiOptions): Api {
  const { url, key, system, retry, webSocket } = options;
  // Throws if the key has characters that a header cannot have.
  const own = new Headers(key === undefined ? {} : { Authorization: `Bearer ${key}` });
  const open = (request: ApiRequest): Promise<OpenAnswer> => opened(request, { ...options, own });

  async function once<T>(request: ApiRequest): Promise<Reply<T>> {
    const answer = await open(request);
    try {
      const text = await textOf(answer);
      const value = answer.status === 204 ? null : jsonIn(text);
      if (value === undefined) throw new UnexpectedAnswerError(`The answer of ${url} is not JSON`, answer);
      // Not validated: the tests of the service check its answers against the schemas.
      return { value: value as T, headers: answer.headers };
    } finally {
      answer.close();
    }
  }

  async function reply<T>(request: ApiRequest): Promise<Reply<T>> {
    const { signal, method = 'GET', isRepeatable = method === 'GET' } = request;
    const { callMs: maxMs = CALL_MS, onWait } = retry;
    const outage = openOutage({ system, maxMs, onWait, signal });
    for (;;) {
      signal?.throwIfAborted();
      try {
        return await once<T>(request);
      } catch (error) {
        // The service has not started a request that it refuses with 429.
        if (!(error instanceof CouncilError) || !(isRepeatable || error instanceof TooManyRequestsError)) throw error;
        await outage.sitOut(error);
      }
    }
  }

  const json = async <T>(request: ApiRequest): Promise<T> => (await reply<T>(request)).value;
  return { system, retry, url, webSocket, isKeyed: key !== undefined, open, reply, json };
}

/** The answer to one attempt. @throws {CouncilError} an answer other than 2xx; or the reason of the signal */
async function opened(
  request: ApiRequest,
  { url, fetch, system, own }: Pick<ApiOptions, 'url' | 'fetch' | 'system'> & { readonly own: Headers },
): Promise<OpenAnswer> {
  const { method = 'GET', body, keepalive, patienceMs = SILENCE_MS, onSent } = request;
  const send = fetch ?? hostFetch(onSent);
  const target = url + request.path + queryText(request.query);
  const headers = new Headers(own);
  Object.entries(request.headers ?? {}).forEach(([name, value]) => headers.set(name, value));
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers.set('Content-Type', 'application/json');
  const line = openLine(url, { system, signal: request.signal });
  try {
    const answer = await line.inTime(patienceMs, () =>
      send(target, {
        method,
        headers,
        redirect: 'manual',
        signal: line.signal,
        ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
        ...(keepalive === true && { keepalive }),
      }),
    );
    const { status } = answer;
    const found = { status, headers: answer.headers, chunks: chunksOf(answer, line), close: line.close };
    if (answer.ok) return found;
    throw refused(`${method} ${target}`, { ...found, text: await textOf(found) });
  } catch (error) {
    line.close();
    throw error;
  }
}

/** A path of the service. @throws {TypeError} for an id that would lead to another path */
export function pathOf(...parts: readonly string[]): string {
  return `/api/${parts.map(escaped).join('/')}`;
}

/** An escaped part of a path. @throws {TypeError} for an id that would lead to another path */
export function escaped(part: string): string {
  if (part === '' || part === '.' || part === '..') throw new TypeError(`"${part}" is not an id`);
  return encodeURIComponent(part);
}

/** A query with its question mark, or '' without parameters. */
export function queryText(query: ApiRequest['query'] = {}): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    sent.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return sent.size === 0 ? '' : `?${sent.toString()}`;
}

/** One request and its answer. It ends with the caller's signal, or if the service is silent for too long. */
interface Line {
  readonly signal: AbortSignal;
  /** @throws {UnreachableError} the service fails or is silent for too long; or the reason of the caller's signal */
  inTime<T>(silenceMs: number, act: () => Promise<T>): Promise<T>;
  close(): void;
}

function openLine(url: string, { system, signal }: CallOptions & { readonly system: ClientSystem }): Line {
  const over = new AbortController();
  const abort = (): void => over.abort();
  signal?.addEventListener('abort', abort);
  if (signal?.aborted === true) abort();
  return {
    signal: over.signal,
    async inTime(silenceMs, act) {
      const disarm = system.after(silenceMs, abort);
      try {
        return await act();
      } catch (error) {
        signal?.throwIfAborted();
        throw new UnreachableError(url, error);
      } finally {
        disarm();
      }
    },
    close() {
      signal?.removeEventListener('abort', abort);
      abort();
    },
  };
}

async function* chunksOf({ body }: Response, line: Line): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  const next = () => line.inTime(SILENCE_MS, () => reader.read());
  for (let chunk = await next(); !chunk.done; chunk = await next()) yield chunk.value;
}

async function textOf({ chunks }: Pick<OpenAnswer, 'chunks'>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** The bytes of an answer. Closes its connection after them. */
export async function bytesOf({ chunks, close }: OpenAnswer): Promise<Uint8Array> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  try {
    for await (const chunk of chunks) parts.push(new Uint8Array(chunk));
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  } finally {
    close();
  }
}

/** The value of a JSON text, or undefined if the text is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refused(
  what: string,
  { status, headers, text }: { readonly status: number; readonly headers: Headers; readonly text: string },
): CouncilError {
  const problem = jsonIn(text);
  const { detail, code, errors = [] }: Problem = isProblem(problem) ? problem : { detail: `${what} answers ${status}` };
  const retryAfter = secondsIn(headers.get('Retry-After'));
  return refusalOf(detail, { status, errors, retryAfter, ...(code !== undefined && { code }) });
}

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'detail' in value && typeof value.detail === 'string';
}

/** The seconds of a `Retry-After` (RFC 9110, section 10.2.3), or null if it is absent or malformed. */
function secondsIn(text: string | null): number | null {
  if (text === null) return null;
  if (/^\d+$/.test(text)) return Number(text);
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - Date.now()) / 1_000);
}
