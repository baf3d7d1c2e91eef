/** Calls to the REST edge of a service. */
import { CouncilError } from '../errors.js';

/** Longest that an answer is waited for, in milliseconds: above what the service gives its own log. */
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
  /** Gives the answer up. */
  readonly signal?: AbortSignal;
}

export interface RestCalls {
  /** @throws {ServiceRefused} for any answer but a 2xx @throws {ServiceUnreachable} when there is none */
  send(method: 'GET' | 'POST' | 'DELETE', path: string, call?: Call): Promise<Reply>;
}

/** The service answered, and not as wished; the message is its `detail`. */
export class ServiceRefused extends CouncilError<{ readonly status: number }> {
  readonly code = 'cli.refused';
  constructor({ status, detail }: { readonly status: number; readonly detail: string }) {
    super(detail, { status });
  }
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

/** @param url of the service, without trailing slash */
export function restCalls(url: string): RestCalls {
  return {
    async send(method, path, { body, idempotencyKey, signal } = {}) {
      const deadline = AbortSignal.timeout(ANSWER_DEADLINE_MS);
      const { status, text } = await exchange(url, path, {
        method,
        redirect: 'manual',
        signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
        headers: {
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

async function exchange(url: string, path: string, request: RequestInit) {
  try {
    const answer = await fetch(url + path, request);
    return { status: answer.status, text: await answer.text() };
  } catch (error) {
    throw new ServiceUnreachable(url, error);
  }
}

/** The refusal that an answer's body tells. @param what was asked, for one that tells nothing */
export function refusalOf(
  { status, text }: { readonly status: number; readonly text: string },
  what: string,
): ServiceRefused {
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
