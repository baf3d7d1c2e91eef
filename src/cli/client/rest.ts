/** A client of the service's REST API. */
import type { System } from '../../system/system.js';
import { CouncilError } from '../../errors.js';
import type { Described, SchemaName, SchemaRegistry } from '../../api/schemas.js';

/** Silence after which the service counts as gone, in milliseconds: its streams send keep-alive comments more often. */
const SILENCE_MS = 60_000;

export interface BodyRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly system: Pick<System, 'after'>;
  /** Aborts the request and its body. */
  readonly signal: AbortSignal;
}

/**
 * The body of an answer to GET; null when the service answers that there is none (204).
 *
 * @param url of the service, without trailing slash
 * @throws {ServiceRefused} for any answer but a 2xx @throws {ServiceUnreachable} when there is none, or, from the
 *   iteration, when it breaks off
 */
export async function openBody(url: string, request: BodyRequest): Promise<AsyncGenerator<Uint8Array> | null> {
  const abandoned = new AbortController();
  const signal = AbortSignal.any([request.signal, abandoned.signal]);
  /** Awaits the service no longer than the longest silence. */
  const inTime = async <T>(act: () => Promise<T>): Promise<T> => {
    const disarm = request.system.after(SILENCE_MS, () => abandoned.abort());
    try {
      return await act();
    } catch (error) {
      throw new ServiceUnreachable(url, error);
    } finally {
      disarm();
    }
  };
  const { path, headers } = request;
  const answer = await inTime(() => fetch(url + path, { headers, redirect: 'manual', signal }));
  if (answer.status === 204) return null;
  if (!answer.ok) {
    throw refusalOf({ status: answer.status, text: await inTime(() => answer.text()) }, `GET ${url}${path}`);
  }
  return chunks(answer, { inTime, leave: () => abandoned.abort() });
}

interface BodyOptions {
  readonly inTime: <T>(act: () => Promise<T>) => Promise<T>;
  readonly leave: () => void;
}

async function* chunks({ body }: Response, { inTime, leave }: BodyOptions): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (let chunk = await inTime(() => reader.read()); !chunk.done; chunk = await inTime(() => reader.read())) {
      yield chunk.value;
    }
  } finally {
    leave();
  }
}

// Calls with a JSON answer.

/** Longest that an answer is waited for, in milliseconds: more than the service waits for its log. */
const ANSWER_DEADLINE_MS = 30_000;

export interface Reply {
  readonly status: number;
  /** The JSON body; null when it is empty. */
  readonly value: unknown;
}

export interface Call {
  readonly body?: object;
  /** Makes the call repeatable without a second effect, where the service takes one. */
  readonly idempotencyKey?: string;
  /** Aborts the call. */
  readonly signal?: AbortSignal;
}

export interface RestCalls {
  /** @throws {ServiceRefused} for any answer but a 2xx @throws {ServiceUnreachable} when there is none */
  send(method: 'GET' | 'POST' | 'DELETE', path: string, call?: Call): Promise<Reply>;
}

/** The service refused the call; the message is its `detail`. */
export class ServiceRefused extends CouncilError<{ readonly status: number }> {
  readonly code = 'cli.refused';
  constructor({ status, detail }: { readonly status: number; readonly detail: string }) {
    super(detail, { status });
  }
}

/** What to add for a user whose key is missing or no good; '' for any other error. */
export function keyHint(error: unknown): string {
  const isKeyless = error instanceof ServiceRefused && error.data.status === 401;
  return isKeyless ? ' (the council commands take a key from COUNCIL_KEY)' : '';
}

/** No answer came. */
export class ServiceUnreachable extends CouncilError<{ readonly url: string; readonly isSent: boolean }> {
  readonly code = 'cli.unreachable';
  /** @param cause as fetch throws it */
  constructor(url: string, cause: unknown) {
    super(`Cannot reach the service at ${url}: is it running?`, { url, isSent: !isUnsent(cause) }, { cause });
  }
}

/** What keeps a connection from being made: nothing was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];

function isUnsent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  return cause instanceof Error && 'code' in cause && UNSENT.includes(String(cause.code));
}

/** @param url of the service, without trailing slash @param key who asks; null: nobody */
export function restCalls(url: string, key: string | null): RestCalls {
  return {
    async send(method, path, { body, idempotencyKey, signal } = {}) {
      const deadline = AbortSignal.timeout(ANSWER_DEADLINE_MS);
      const { status, text } = await exchange(url, path, {
        method,
        redirect: 'manual',
        signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
        headers: {
          ...signature(key),
          ...(body && { 'Content-Type': 'application/json' }),
          ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (status >= 200 && status < 300) return { status, value: jsonValue(text) };
      throw refusalOf({ status, text }, `${method} ${url}${path}`);
    },
  };
}

/** The header by which a key is sent. */
export function signature(key: string | null): Readonly<Record<string, string>> {
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}

async function exchange(url: string, path: string, request: RequestInit) {
  try {
    const answer = await fetch(url + path, request);
    return { status: answer.status, text: await answer.text() };
  } catch (error) {
    throw new ServiceUnreachable(url, error);
  }
}

/** The refusal in an answer's body. @param what was requested, for a body without a `detail` */
function refusalOf({ status, text }: { readonly status: number; readonly text: string }, what: string): ServiceRefused {
  return new ServiceRefused({ status, detail: detailOf(jsonValue(text)) ?? `${what} answers ${status}` });
}

/** The value of a JSON text; null when it is none. */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function detailOf(value: unknown): string | null {
  const isProblem = typeof value === 'object' && value !== null && 'detail' in value;
  return isProblem && typeof value.detail === 'string' ? value.detail : null;
}

// Answers checked against their schemas.

/** The value of an answer that a schema describes. @throws {ServiceRefused} when it does not fit: no council service */
export type ReplyReader = <N extends SchemaName>(reply: Reply, name: N) => Described<N>;

export function replyReader(url: string, schemas: SchemaRegistry): ReplyReader {
  return (reply, name) => {
    const validate = schemas.validator(name);
    if (validate(reply.value)) return reply.value;
    throw new ServiceRefused({ status: reply.status, detail: `${url} answers something that is no ${name}` });
  };
}
