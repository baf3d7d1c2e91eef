/** HTTP requests to providers over connections that are kept alive. */
import type { Dispatcher } from 'undici';
import { Agent, ProxyAgent, util } from 'undici';
import type { ProxySettings } from '../config-values.js';
import { BodyTooLarge } from '../system/untrusted.js';

/** Largest answer in bytes. A draft takes 128 KiB; a stream adds some 200 bytes per token; 100 vectors are 6 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Most bytes read of the body of an error status. */
const MAX_ERROR_BYTES = 64 * 1024;

export const NO_PROXIES: ProxySettings = { http: null, https: null, none: '' };

/** Sends requests; HTTP clients of undici are transports. */
export type Transport = Pick<Dispatcher, 'dispatch'>;

/**
 * Pools of connections that are kept alive. `https:` goes through the proxy of HTTPS_PROXY by CONNECT, `http:` through that
 * of HTTP_PROXY as plain requests, because proxies forbid CONNECT to other ports than 443. Connecting may take 10 s,
 * undici's default. Undici's agent for these settings sends `https:` through HTTP_PROXY too, and prints a warning.
 */
export function modelTransport({ http, https, none }: ProxySettings): Transport {
  const direct = new Agent();
  const proxies = new Map([
    ['http:', http === null ? direct : new ProxyAgent({ uri: http, proxyTunnel: false })],
    ['https:', https === null ? direct : new ProxyAgent(https)],
  ]);
  const exceptions = none.toLowerCase().split(/[\s,]+/);
  return {
    dispatch(options, handler) {
      const url = new URL(options.origin ?? '');
      const isDirect = exceptions.some((each) => isExcepted(url, each));
      return ((isDirect ? undefined : proxies.get(url.protocol)) ?? direct).dispatch(options, handler);
    },
  };
}

/** Whether an entry of NO_PROXY names the host: `*`, or the host or a domain above it, perhaps with the port. */
function isExcepted({ hostname, port, protocol }: URL, entry: string): boolean {
  const name = entry.replace(/^\*?\./, '');
  const withPort = `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
  const names = [hostname, withPort, hostname.replace(/[[\]]/g, '')];
  return name === '*' || (name !== '' && names.some((each) => each === name || each.endsWith(`.${name}`)));
}

export interface HttpPost {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Closes the connection, also while the answer comes. */
  readonly signal: AbortSignal;
  readonly transport: Transport;
}

/** Sends a request. Resolves when the head of the answer is there; follows no redirect. Rejects with undici's errors. */
export function post(url: string, { headers, body, signal, transport }: HttpPost): Promise<HttpAnswer> {
  const { origin, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const answer = new HttpAnswer(signal, resolve, reject);
    const request = { origin, path: pathname + search, method: 'POST' as const, headers, body };
    // The signal alone ends a call: a slow model needs more than undici's 300 s.
    transport.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0 }, answer);
  });
}

/** An answer as it comes. Reading it by undici's streams costs three times as much. */
export class HttpAnswer implements Dispatcher.DispatchHandlers {
  readonly #signal: AbortSignal;
  readonly #onHead: (answer: HttpAnswer) => void;
  readonly #onFailure: (error: Error) => void;
  readonly #onAbort = (): void => this.#fail(new Error('The request was aborted'));
  #rawHeaders: Buffer[] = [];
  #status = 0;
  /** What has come and is not read. */
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #isComplete = false;
  #error: Error | null = null;
  /** Closes the connection of an answer that is not complete. */
  #close = (): void => undefined;
  /** Wakes the reader. */
  #wake = (): void => undefined;

  constructor(signal: AbortSignal, onHead: (answer: HttpAnswer) => void, onFailure: (error: Error) => void) {
    this.#signal = signal;
    this.#onHead = onHead;
    this.#onFailure = onFailure;
    signal.addEventListener('abort', this.#onAbort);
  }

  get status(): number {
    return this.#status;
  }

  get isSuccess(): boolean {
    return this.#status >= 200 && this.#status < 300;
  }

  /** By names in lower case. */
  get headers(): Readonly<Record<string, string | readonly string[]>> {
    return util.parseHeaders(this.#rawHeaders);
  }

  /** The whole body as UTF-8. @throws {BodyTooLarge} or an error of undici */
  async text(): Promise<string> {
    while (!this.#isComplete) await this.#change();
    return new TextDecoder().decode(Buffer.concat(this.#chunks));
  }

  /** The first character that is no space, so that the content type need not be believed; empty without one. */
  async firstCharacter(): Promise<string> {
    for (let read = 0; ;) {
      const first = this.#chunks
        .slice(read)
        .map((chunk) => firstCharacter(chunk.toString()))
        .join('')
        .slice(0, 1);
      if (first !== '' || this.#isComplete) return first;
      read = this.#chunks.length;
      await this.#change();
    }
  }

  /** Ends the body where it is: its reader needs no more of it. */
  end(): void {
    this.#isComplete = true;
    this.#wake();
  }

  /** The chunks of the body. Leaving the loop closes the connection. @throws {BodyTooLarge} or an error of undici */
  async *chunks(): AsyncGenerator<Buffer> {
    try {
      while (this.#chunks.length > 0 || !this.#isComplete) {
        const chunk = this.#chunks.shift();
        if (chunk === undefined) await this.#change();
        else yield chunk;
      }
    } finally {
      this.#close();
    }
  }

  /** Resolves when more of the body has come. */
  async #change(): Promise<void> {
    if (this.#error === null) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#error !== null) throw this.#error;
  }

  onConnect(abort: () => void): void {
    this.#close = abort;
    if (this.#error !== null) abort();
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    if (status < 200) return true;
    this.#status = status;
    this.#rawHeaders = headers;
    this.#onHead(this);
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    const maxBytes = this.isSuccess ? MAX_ANSWER_BYTES : MAX_ERROR_BYTES;
    if (this.#bytes > maxBytes) this.#fail(new BodyTooLarge(`More than ${maxBytes} bytes came`));
    else this.#chunks.push(chunk);
    this.#wake();
    return true;
  }

  onComplete(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#isComplete = true;
    this.#wake();
  }

  onError(error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#error !== null) return;
    this.#error = error;
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#onFailure(error);
    this.#wake();
    this.#close();
  }
}

export function firstCharacter(text: string): string {
  return text
    .replace(/^\uFEFF/, '')
    .trimStart()
    .slice(0, 1);
}
