/** Classifies failed HTTP exchanges with a model's server, the same for every provider. */
import type { ModelFailureKind } from '../errors.js';
import { fieldOf, listOf } from '../system/untrusted.js';

export interface FaultKind {
  readonly kind: ModelFailureKind;
  readonly retryable: boolean;
}

/** The kind of failure behind an error status. */
export function kindOfStatus(status: number): FaultKind {
  return STATUSES.get(status) ?? { kind: 'http_error', retryable: status >= 500 };
}

/** The kind of failure behind a connection error, by its code; null: it has none. */
export function kindOfConnection(code: string | null): FaultKind & { readonly why: string } {
  return CONNECTIONS.find(({ codes }) => code !== null && codes.test(code)) ?? OTHER_CONNECTION;
}

/**
 * A hint for a server that ended the TLS handshake in a way that servers of plain HTTP do; empty for other failures.
 *
 * @param error of the connection
 * @param setting that holds the address
 */
export function hintOfConnection(error: unknown, setting: string): string {
  const code = fieldOf(error, 'code');
  const isPlain = typeof code === 'string' && NO_TLS.test(code);
  // Of all resets, Node describes the connection only in that of a handshake which the server has cut off.
  const isClosed = code === 'ECONNRESET' && error instanceof Error && 'localAddress' in error;
  return isPlain || isClosed ? `; the server may speak plain HTTP: check ${setting}, http:// for https://` : '';
}

/** Whether a server's message says that it has no such model: routers answer that with 400. */
export function isModelUnknown(status: number, said: string): boolean {
  return (status === 400 || status === 422) && MODEL_UNKNOWN.test(said);
}

/** The message in an error body, in any of the usual forms: `error.message`, `error`, `message`, `detail`. */
export function errorMessageOf(body: unknown): string {
  const error = fieldOf(body, 'error');
  const found = [fieldOf(error, 'message'), error, fieldOf(body, 'message'), fieldOf(body, 'detail')];
  return found.find((each) => typeof each === 'string') ?? '';
}

/** Whether a failure of this kind is an outage of the server, which may pass, and not caused by the request. */
export function isOutage(kind: ModelFailureKind): boolean {
  return OUTAGES.has(kind);
}

/** Whether a failure of this kind shows that the server has answered, even if with a refusal. */
export function isAnswer(kind: ModelFailureKind): boolean {
  return !isOutage(kind) && kind !== 'timeout' && kind !== 'network_error';
}

/** A server's message on one line, bounded, with secrets replaced. */
export function redact(said: string, hidden: readonly string[]): string {
  const safe = hidden.reduce((text, each) => (each === '' ? text : text.replaceAll(each, '…')), said);
  const line = safe
    .slice(0, 4 * MAX_WORDS_CHARS)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > MAX_WORDS_CHARS ? `${line.slice(0, MAX_WORDS_CHARS)}…` : line;
}

/** A server's value that should be a short name, made safe for a message, with secrets replaced. */
export function redactedName(name: unknown, hidden: readonly string[]): string {
  if (typeof name !== 'string') return typeof name;
  const safe = redact(name, hidden).replace(/[^\w-]/g, '?');
  return safe.slice(0, 60);
}

/** Most UTF-16 units quoted of a server's message: a sentence or two. */
const MAX_WORDS_CHARS = 300;

/** Retryable is what may pass by itself; of unlisted statuses those from 500 on. */
const STATUSES: ReadonlyMap<number, FaultKind> = new Map<number, FaultKind>([
  [400, { kind: 'bad_request', retryable: false }],
  [401, { kind: 'unauthorized', retryable: false }],
  [403, { kind: 'forbidden', retryable: false }],
  [404, { kind: 'model_unknown', retryable: false }],
  [408, { kind: 'request_timeout', retryable: true }],
  [429, { kind: 'rate_limited', retryable: true }],
  [500, { kind: 'server_error', retryable: true }],
  [501, { kind: 'not_implemented', retryable: false }],
  [502, { kind: 'bad_gateway', retryable: true }],
  [503, { kind: 'unavailable', retryable: true }],
  [504, { kind: 'gateway_timeout', retryable: true }],
  // Not registered; used by Anthropic and compatible servers.
  [529, { kind: 'overloaded', retryable: true }],
]);

/** By error codes of Node, undici and OpenSSL. A bad certificate is not retryable: it will not change in time. */
const CONNECTIONS: readonly (FaultKind & { readonly codes: RegExp; readonly why: string })[] = [
  { codes: /^ECONNREFUSED$/, why: 'the connection was refused', kind: 'connection_refused', retryable: true },
  {
    codes: /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    why: 'the connection broke',
    kind: 'connection_lost',
    retryable: true,
  },
  { codes: /^(?:ENOTFOUND|EAI_\w+)$/, why: 'its host name was not found', kind: 'host_unknown', retryable: true },
  {
    codes: /^UND_ERR_(?:HEADERS|BODY)_TIMEOUT$/,
    why: 'it took the request and no answer came in time',
    kind: 'timeout',
    retryable: true,
  },
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

/** OpenSSL has received something other than TLS. */
const NO_TLS = /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL|HTTP_REQUEST)$|^EPROTO$/;

/** As worded by LiteLLM, OpenRouter, Mistral, DeepSeek, llama.cpp, llama-swap, vLLM and others. */
const MODEL_UNKNOWN = new RegExp(
  [
    String.raw`\b(?:invalid|unknown|unsupported|no such|not a valid|could not find(?: a| the| real)?) model(?:ID)?\b`,
    String.raw`\bmodel\b[^.;]{0,200}\b(?:not found|not exist|not a valid)\b`,
    String.raw`\bmodel ['"\x60][^'"\x60]{1,200}['"\x60] is not (?:supported|available)\b`,
    String.raw`\bLLM Provider NOT provided\b`,
  ].join('|'),
  'i',
);

const OTHER_CONNECTION = { why: 'the connection failed', kind: 'network_error', retryable: true } as const;

const OUTAGES: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  'bad_gateway',
  'unavailable',
  'overloaded',
  'connection_refused',
  'connection_lost',
  'host_unknown',
  'unreachable',
]);

/**
 * Milliseconds a `Retry-After` header asks for: whole seconds or an HTTP-date in GMT (RFC 9110, section 10.2.3), a date
 * in the past asks for none.
 *
 * @param now ISO 8601
 * @returns null for an absent or unreadable header
 */
export function waitOfHeader(retryAfter: string | null, now: string): number | null {
  if (retryAfter === null) return null;
  const text = retryAfter.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse alone accepts too much as a date, even "1.5" and "-5".
  const at = /^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - Date.parse(now));
}

/**
 * Milliseconds that google.rpc.RetryInfo asks for among the details of an error's body: `retryDelay` is a number of
 * seconds with up to nine decimals and an `s`.
 *
 * @returns null without a readable one
 */
export function waitOfDetails(details: unknown): number | null {
  for (const detail of listOf(details)) {
    const type = fieldOf(detail, '@type');
    const delay = fieldOf(detail, 'retryDelay');
    if (typeof type !== 'string' || !type.endsWith('google.rpc.RetryInfo') || typeof delay !== 'string') continue;
    if (/^\d{1,9}(?:\.\d{1,9})?s$/.test(delay)) return Math.ceil(Number(delay.slice(0, -1)) * 1000);
  }
  return null;
}
