/** Calls to the REST edge of a service. */
import { CouncilError } from '../errors.js';

/** Longest that an answer is waited for, in milliseconds: above what the service gives its own log. */
const ANSWER_DEADLINE_MS = 30_000;

export interface Reply {
  readonly status: number;
  /** The Location header, empty without one. */
  readonly location: string;
  /** The JSON body; null when it is empty. */
  readonly value: unknown;
}

export interface RestCalls {
  /** @throws {ServiceRefused} for any answer but a 2xx @throws {ServiceUnreachable} when there is none */
  send(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Reply>;
}

/** The service answered, and not as wished; the message is its `detail`. */
export class ServiceRefused extends CouncilError<{ readonly status: number }> {
  readonly code = 'cli.refused';
  constructor({ status, detail }: { readonly status: number; readonly detail: string }) {
    super(detail, { status });
  }
}

/** No answer came. */
export class ServiceUnreachable extends CouncilError<{ readonly url: string }> {
  readonly code = 'cli.unreachable';
  constructor(url: string, cause: unknown) {
    super(`Cannot reach the service at ${url}: is it running?`, { url }, { cause });
  }
}

/** @param url of the service, without trailing slash */
export function restCalls(url: string): RestCalls {
  return {
    async send(method, path, body) {
      const { status, location, text } = await exchange(url, path, {
        method,
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
        ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
      });
      const value = jsonValue(text);
      if (status >= 200 && status < 300) return { status, location, value };
      throw new ServiceRefused({ status, detail: detailOf(value) ?? `${method} ${url}${path} answers ${status}` });
    },
  };
}

async function exchange(url: string, path: string, request: RequestInit) {
  try {
    const answer = await fetch(url + path, request);
    return { status: answer.status, location: answer.headers.get('Location') ?? '', text: await answer.text() };
  } catch (error) {
    throw new ServiceUnreachable(url, error);
  }
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
