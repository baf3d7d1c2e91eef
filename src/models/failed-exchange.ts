/** Classifies failed HTTP exchanges with a model's server, the same for every provider. */
import type { ModelFailureKind } from '../errors.js';
import { fieldOf, listOf } from '../system/untrusted.js';

export interface FaultKind {
  readonly kind: ModelFailureKind;
  readonly retryable: boolean;
}

/**
 * The kind of failure behind a refusal. Codes in the body decide before the status: routers and filters use the status of
 * a bad request, a rate limit or an outage for failures that no retry can fix.
 *
 * @param body the parsed body, or its text where it is not JSON
 */
export function kindOfRefusal(status: number, body: unknown): FaultKind {
  const codes = codesOf(body);
  const said = typeof body === 'string' ? body : errorMessageOf(body);
  if (codes.some((code) => QUOTA_CODES.has(code)) || (status < 500 && QUOTA_WORDS.test(said))) return QUOTA_USED_UP;
  if (isBlocked(body)) return PROMPT_BLOCKED;
  if (codes.includes('API_KEY_INVALID')) return UNAUTHORIZED;
  if (codes.includes('model_not_found') || isModelUnknown(status, said)) return MODEL_UNKNOWN;
  if (codes.includes('overloaded_error')) return OVERLOADED;
  return STATUSES.get(status) ?? { kind: 'http_error', retryable: status >= 500 };
}

/** Whether an error says that a filter stopped the prompt: in its code, its inner code, or what a router adds to it. */
export function isBlocked(body: unknown): boolean {
  const flagged = fieldOf(fieldOf(fieldOf(body, 'error'), 'metadata'), 'flagged_input');
  return flagged !== undefined || codesOf(body).some((code) => BLOCKED_CODES.has(code));
}

/** Every code that an error carries: its `code`, `type` and `status`, those of an inner error, and Google's reasons. */
function codesOf(body: unknown): readonly unknown[] {
  const error = fieldOf(body, 'error');
  const inner = fieldOf(error, 'innererror');
  const reasons = listOf(fieldOf(error, 'details')).map((each) => fieldOf(each, 'reason'));
  return [body, error, inner].flatMap((each) => [fieldOf(each, 'code'), fieldOf(each, 'type')]).concat(reasons);
}

const QUOTA_USED_UP: FaultKind = { kind: 'quota_used_up', retryable: false };
const PROMPT_BLOCKED: FaultKind = { kind: 'prompt_blocked', retryable: false };
const MODEL_UNKNOWN: FaultKind = { kind: 'model_unknown', retryable: false };
const UNAUTHORIZED: FaultKind = { kind: 'unauthorized', retryable: false };
const OVERLOADED: FaultKind = { kind: 'overloaded', retryable: true };

/** OpenAI and compatible servers answer 429 for an empty account too, where waiting does not help. */
const QUOTA_CODES: ReadonlySet<unknown> = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_error',
]);

/** Anthropic and DeepSeek name an empty account in words alone. */
const QUOTA_WORDS =
  /\b(?:credit balance is too low|insufficient (?:balance|credits?)|exceeded your current quota, please check your plan)\b/i;

/** Codes of OpenAI, Azure and others. */
const BLOCKED_CODES: ReadonlySet<unknown> = new Set([
  'content_filter',
  'content_policy_violation',
  'ResponsibleAIPolicyViolation',
  'invalid_prompt',
  'moderation_blocked',
  'data_inspection_failed',
]);

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
  return (status === 400 || status === 422) && UNKNOWN_MODEL_WORDS.test(said);
}

/**
 * The message in an error body, in any of the usual forms: `error.metadata.raw` of a router, `error.message`, `error`,
 * `message`, `detail` as a text or as FastAPI's list.
 */
export function errorMessageOf(body: unknown): string {
  const [first] = listOf(body);
  if (first !== undefined) return errorMessageOf(first);
  const error = fieldOf(body, 'error');
  const details = listOf(fieldOf(body, 'detail')).map((each) =>
    [...listOf(fieldOf(each, 'loc')), fieldOf(each, 'msg')].join(' '),
  );
  const found = [
    messageOfRaw(fieldOf(fieldOf(error, 'metadata'), 'raw')),
    fieldOf(error, 'message'),
    error,
    fieldOf(body, 'message'),
    fieldOf(body, 'detail'),
    details.length > 0 ? details.join('; ') : undefined,
  ];
  return found.filter((each) => typeof each === 'string').find((each) => each !== '') ?? '';
}

/** A router passes on what the provider said, as JSON text or plain. */
function messageOfRaw(raw: unknown): string | undefined {
  if (typeof raw !== 'string') return raw === undefined ? undefined : errorMessageOf(raw);
  try {
    return errorMessageOf(JSON.parse(raw)) || raw;
  } catch {
    return raw;
  }
}

/** Whether a failure of this kind is an outage of the server or a rate limit: both pass, and no request causes them. */
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
export function redactName(name: unknown, hidden: readonly string[]): string {
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
  [402, { kind: 'quota_used_up', retryable: false }],
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
const UNKNOWN_MODEL_WORDS = new RegExp(
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
  'rate_limited',
  'connection_refused',
  'connection_lost',
  'host_unknown',
  'unreachable',
]);
