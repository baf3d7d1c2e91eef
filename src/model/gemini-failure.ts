/** Names what went wrong with a call to Gemini that gave no answer to read. */
import { GoogleGenerativeAIFetchError } from '@google/generative-ai';
import { ModelFailed } from '../errors.js';
import type { Exchange } from './exchange.js';
import { fieldOf } from './field.js';
import { waitOfDetails, waitOfHeader } from './retry-after.js';

export interface FailedCall {
  readonly model: string;
  readonly exchange: Exchange;
  /** ISO 8601. */
  readonly now: string;
  /** Texts that no message may hold: the key, the prompt. */
  readonly hidden: readonly string[];
}

/**
 * The failure of a call from what the SDK threw and what was seen of the exchange. It has no `cause`: the SDK's errors
 * quote the server without a bound, and a server may quote the key.
 */
export function geminiFailure(error: unknown, call: FailedCall): ModelFailed {
  if (error instanceof GoogleGenerativeAIFetchError && error.status !== undefined) {
    return statusFailure(error, error.status, call);
  }
  if (call.exchange.redirected) return failure(call, 'it answered with a redirect', 'redirected', false);
  if (error instanceof SyntaxError) {
    const what = error.message.startsWith('Unexpected end') ? 'empty or cut off' : 'no JSON';
    return failure(call, `the body of its answer is ${what}`, 'unreadable_answer', true);
  }
  const code = call.exchange.brokenBy ?? fieldOf(fieldOf(error, 'cause'), 'code');
  if (typeof code === 'string') return connectionFailure(code, call);
  // The SDK adds methods to what it has parsed, which a number, a text or null does not take.
  if (error instanceof TypeError && error.cause === undefined) {
    return failure(call, 'the body of its answer is no JSON object', 'unreadable_answer', true);
  }
  return failure(call, 'the request failed', 'network_error', true);
}

function statusFailure(error: GoogleGenerativeAIFetchError, status: number, call: FailedCall): ModelFailed {
  const { kind, retryable } = isKeyRefused(error) ? KEY_REFUSED : kindOfStatus(status);
  const words = wordsOf(error, call.hidden);
  const hint = kind === 'unauthorized' || kind === 'forbidden' ? ' (check GEMINI_API_KEY)' : '';
  const waits = [waitOfHeader(call.exchange.retryAfter, call.now), waitOfDetails(error.errorDetails)];
  const asked = waits.filter((wait) => wait !== null);
  return new ModelFailed(`${about(call)}: it answered ${status}${hint}${words === '' ? '' : `: ${words}`}`, {
    kind,
    retryable,
    ...(asked.length > 0 && { retryAfterMs: Math.max(...asked) }),
  });
}

function kindOfStatus(status: number): { readonly kind: string; readonly retryable: boolean } {
  return STATUSES.get(status) ?? { kind: 'http_error', retryable: status >= 500 };
}

/** Gemini answers a wrong key with 400 and says so in the details. */
function isKeyRefused({ errorDetails }: GoogleGenerativeAIFetchError): boolean {
  return Array.isArray(errorDetails) && errorDetails.some((each) => fieldOf(each, 'reason') === 'API_KEY_INVALID');
}

/** What the server said, on one line, bounded, without what is hidden. The SDK puts it between address and details. */
function wordsOf(
  { message, status, statusText, errorDetails }: GoogleGenerativeAIFetchError,
  hidden: readonly string[],
): string {
  const head = `[${status ?? ''} ${statusText ?? ''}] `;
  const details = errorDetails === undefined ? '' : ` ${JSON.stringify(errorDetails)}`;
  const said = message.slice(message.indexOf(head) + head.length, message.length - details.length);
  const safe = hidden.reduce((text, each) => (each === '' ? text : text.replaceAll(each, '…')), said);
  const line = safe
    .slice(0, 4 * MAX_WORDS_CHARS)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > MAX_WORDS_CHARS ? `${line.slice(0, MAX_WORDS_CHARS)}…` : line;
}

function connectionFailure(code: string, call: FailedCall): ModelFailed {
  const { why, kind, retryable } = CONNECTIONS.find(({ codes }) => codes.test(code)) ?? OTHER_CONNECTION;
  return failure(call, `${why} (${code})`, kind, retryable);
}

function failure(call: FailedCall, why: string, kind: string, retryable: boolean): ModelFailed {
  return new ModelFailed(`${about(call)}: ${why}`, { kind, retryable });
}

function about({ model }: FailedCall): string {
  return `Cannot get an answer from Gemini for model "${model}"`;
}

/** Of the server's own words in a message, in UTF-16 units: a sentence or two. */
const MAX_WORDS_CHARS = 300;

const KEY_REFUSED = { kind: 'unauthorized', retryable: false };

/** Asked again is what may pass by itself; of other statuses those from 500 on. */
const STATUSES: ReadonlyMap<number, { readonly kind: string; readonly retryable: boolean }> = new Map([
  [400, { kind: 'bad_request', retryable: false }],
  [401, { kind: 'unauthorized', retryable: false }],
  [403, { kind: 'forbidden', retryable: false }],
  [404, { kind: 'model_unknown', retryable: false }],
  [408, { kind: 'request_timeout', retryable: true }],
  [429, { kind: 'rate_limited', retryable: true }],
  [500, { kind: 'server_error', retryable: true }],
  [502, { kind: 'bad_gateway', retryable: true }],
  [503, { kind: 'unavailable', retryable: true }],
  [504, { kind: 'gateway_timeout', retryable: true }],
]);

/** By codes of Node, undici and OpenSSL. A certificate does not mend itself within the tries of a node. */
const CONNECTIONS = [
  { codes: /^ECONNREFUSED$/, why: 'the connection was refused', kind: 'connection_refused', retryable: true },
  {
    codes: /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    why: 'the connection broke',
    kind: 'connection_lost',
    retryable: true,
  },
  { codes: /^(?:ENOTFOUND|EAI_\w+)$/, why: 'its host name was not found', kind: 'host_unknown', retryable: true },
  {
    codes: /TIMEOUT|^ETIMEDOUT$|^E\w+UNREACH$/,
    why: 'it could not be reached in time',
    kind: 'unreachable',
    retryable: true,
  },
  {
    codes: /CERT|SSL|TLS|SIGNATURE|^EPROTO$/,
    why: 'no trusted TLS connection came about',
    kind: 'tls_failed',
    retryable: false,
  },
];

const OTHER_CONNECTION = { why: 'the connection failed', kind: 'network_error', retryable: true };
