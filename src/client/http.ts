/** Requests to the service, and the one way in which all of them fail. */
import type { Problem } from '../generated/schemas.js';
import { CouncilError, TooManyRequestsError, UnexpectedAnswerError, UnreachableError, refusalOf } from './errors.js';
import type { OnSent } from './host-fetch.js';
import { hostFetch } from './host-fetch.js';
import type { RetryOptions } from './retry.js';
import { openOutage } from './retry.js';
import type { ClientSystem } from './system.js';
import type { WebSocketClass } from './web-socket.js';

/** Longest silence of the service, in milliseconds: its streams send comments every 15 s. */
export const SILENCE_MS = 60_000;
/** For how long a call is tried again, in milliseconds. */
const CALL_MS = 30_000;

export type Fetch = typeof globalThis.fetch;

/** What all calls take. */
export interface CallOptions {
  /** Aborts it. */
  readonly signal?: AbortSignal | undefined;
}

type QueryValue = string | number | boolean | Date | readonly string[] | null | undefined;

export interface ApiRequest extends CallOptions {
  /** Default: GET. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** From the service's root, each part escaped. */
  readonly path: string;
  /** What is null or absent is left out; a list is sent with commas. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  /** Goes as JSON; a form as it is. */
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether sending it twice does no more than sending it once. Default: only GET. */
  readonly isRepeatable?: boolean;
  /** How long to wait for the answer, in milliseconds. Default: 60,000. */
  readonly patienceMs?: number;
  /** Called while the body is sent, where the host reports it. */
  readonly onSent?: OnSent | undefined;
}

/** An answer whose body is still to come. */
export interface OpenAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it arrives. @throws {UnreachableError} when it breaks off, or the signal's reason */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Drops the rest of the body, and frees all that the answer holds. */
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
  /** Undefined: the host's. */
  readonly fetch: Fetch | undefined;
  /** Undefined: there is none. */
  readonly webSocket: WebSocketClass | undefined;
  readonly system: ClientSystem;
  readonly retry: RetryOptions;
}

/** @throws {CouncilError} from each call; the signal's reason, when it aborts */
export interface Api extends Pick<ApiOptions, 'system' | 'retry' | 'url' | 'webSocket'> {
  /** Whether requests carry a key. */
  readonly isKeyed: boolean;
  /** Sends the request once. */
  open(request: ApiRequest): Promise<OpenAnswer>;
  /** The value of a JSON answer, after as many tries as are safe. @param T what the service's OpenAPI document says of it */
  json<T>(request: ApiRequest): Promise<T>;
  /** The same with the answer's headers. */
  reply<T>(request: ApiRequest): Promise<Reply<T>>;
}

export function openApi(options: ApiOptions): Api {
  const { url, key, system, retry, webSocket } = options;
  // Throws on a key that no header can hold, before anything is sent.
  const own = new Headers(key === undefined ? {} : { Authorization: `Bearer ${key}` });
  const open = (request: ApiRequest): Promise<OpenAnswer> => opened(request, { ...options, own });

  async function once<T>(request: ApiRequest): Promise<Reply<T>> {
    const answer = await open(request);
    try {
      const text = await textOf(answer);
      const value = answer.status === 204 ? null : jsonIn(text);
      if (value === undefined) throw new UnexpectedAnswerError(`${url} answers something that is no JSON`, answer);
      // Not validated here: the service's tests check its answers against the schemas.
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
        // A request that was refused with 429 was not begun.
        if (!(error instanceof CouncilError) || !(isRepeatable || error instanceof TooManyRequestsError)) throw error;
        await outage.sitOut(error);
      }
    }
  }

  const json = async <T>(request: ApiRequest): Promise<T> => (await reply<T>(request)).value;
  return { system, retry, url, webSocket, isKeyed: key !== undefined, open, reply, json };
}

/** The answer to one try. @throws {CouncilError} for any but a 2xx, or the signal's reason */
async function opened(
  request: ApiRequest,
  { url, fetch, system, own }: Pick<ApiOptions, 'url' | 'fetch' | 'system'> & { readonly own: Headers },
): Promise<OpenAnswer> {
  const { method = 'GET', body, patienceMs = SILENCE_MS, onSent } = request;
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
        ...{ method, headers, redirect: 'manual', signal: line.signal },
        ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
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

/** A path of the service, its parts escaped. @throws {TypeError} for an id that would lead elsewhere */
export function pathOf(...parts: readonly string[]): string {
  return `/api/${parts.map(escaped).join('/')}`;
}

/** One part of a path. @throws {TypeError} for an id that would lead elsewhere */
export function escaped(part: string): string {
  if (part === '' || part === '.' || part === '..') throw new TypeError(`"${part}" is no id`);
  return encodeURIComponent(part);
}

/** A query with its question mark; empty without parameters. */
export function queryText(query: ApiRequest['query'] = {}): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    sent.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return sent.size === 0 ? '' : `?${sent.toString()}`;
}

// One exchange: it ends by the caller's signal, or when the service is silent for too long.

interface Line {
  readonly signal: AbortSignal;
  /** Waits for the service. @throws {UnreachableError} it fails, or is silent for too long; or the caller's reason */
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

/** The value of a JSON text; undefined when it is none. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Refusals.

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

/** Seconds, or a date (RFC 9110, section 10.2.3); null when it is neither. */
function secondsIn(text: string | null): number | null {
  if (text === null) return null;
  if (/^\d+$/.test(text)) return Number(text);
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - Date.now()) / 1_000);
}
