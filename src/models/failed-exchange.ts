/** Classifies failed HTTP exchanges with a model's server, the same for every provider. */
import type { ModelFailureKind, ModelFault } from '../errors.js';
import { ModelFailed } from '../errors.js';
import { fieldOf, listOf } from '../system/untrusted.js';
import { withoutPieces } from './key-pieces.js';

/** A failure of this kind; the kind decides whether the call may be repeated. */
export function modelFailed(
  message: string,
  kind: ModelFailureKind,
  more: Pick<ModelFault, 'retryAfterMs'> = {},
): ModelFailed {
  return new ModelFailed(message, { kind, retryable: RETRYABLE.has(kind), ...more });
}

/** What may pass by itself, or come out differently. */
const RETRYABLE: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['request_timeout', 'rate_limited', 'server_error', 'bad_gateway', 'unavailable', 'overloaded'] as const),
  ...(['gateway_timeout', 'connection_refused', 'connection_lost', 'host_unknown', 'unreachable'] as const),
  ...(['network_error', 'timeout', 'unreadable_answer', 'error_answer', 'no_candidates', 'no_choices'] as const),
  ...(['no_text', 'empty_answer', 'thoughts_only', 'recitation', 'other', 'malformed_function_call'] as const),
]);

/**
 * The kind of failure behind a refusal. Codes in the body decide before the status: routers and filters use the status of
 * a bad request, a rate limit or an outage for failures that no retry can fix.
 *
 * @param body the parsed body, or its text where it is not JSON
 */
export function kindOfRefusal(status: number, body: unknown): ModelFailureKind {
  const said = typeof body === 'string' ? body : errorMessageOf(body);
  const isEmptyAccount = status < 500 && EMPTY_ACCOUNT_WORDS.test(said);
  const kind = isEmptyAccount ? 'quota_used_up' : (kindByCode(body) ?? kindByWords(status, said));
  return kind ?? STATUSES.get(status) ?? (status >= 500 ? 'server_error' : 'http_error');
}

function kindByCode(body: unknown): ModelFailureKind | undefined {
  if (isBlocked(body)) return 'prompt_blocked';
  const named = codesOf(body).map((code) => KIND_OF_CODE.get(code));
  return named.includes('quota_used_up') ? 'quota_used_up' : named.find((each) => each !== undefined);
}

function kindByWords(status: number, said: string): ModelFailureKind | undefined {
  if (status < 500 && USED_QUOTA_WORDS.test(said)) return 'quota_used_up';
  return (status === 400 || status === 422) && UNKNOWN_MODEL_WORDS.test(said) ? 'model_unknown' : undefined;
}

/** Whether an error says that a filter stopped the prompt: in its code, its inner code, or what a router adds to it. */
export function isBlocked(body: unknown): boolean {
  const flagged = fieldOf(fieldOf(fieldOf(body, 'error'), 'metadata'), 'flagged_input');
  return flagged !== undefined || codesOf(body).some((code) => KIND_OF_CODE.get(code) === 'prompt_blocked');
}

/**
 * Every code that an error carries: its `code`, `type` and `status`, those of an inner error and of the error that a router
 * passes on, and Google's reasons and periods of quotas.
 */
function codesOf(body: unknown): readonly unknown[] {
  const only = listOf(body)[0] ?? body;
  const error = fieldOf(only, 'error');
  const inner = fieldOf(error, 'innererror');
  const codes = [only, error, inner].flatMap((each) => ['code', 'type', 'status'].map((field) => fieldOf(each, field)));
  const details = listOf(fieldOf(error, 'details'));
  const reasons = details.map((each) => fieldOf(each, 'reason'));
  const quotas = details.flatMap((each) => listOf(fieldOf(each, 'violations'))).map((each) => fieldOf(each, 'quotaId'));
  const periods = quotas.map((each) => (typeof each === 'string' ? /PerDay/.exec(each)?.[0] : undefined));
  const raw = fieldOf(fieldOf(error, 'metadata'), 'raw');
  return [...codes, ...reasons, ...periods, ...(raw === undefined ? [] : codesOf(valueOfRaw(raw)))];
}

/** Codes of OpenAI, Azure, Google, Anthropic and others. Many answer 429 for an empty account too. */
const KIND_OF_CODE: ReadonlyMap<unknown, ModelFailureKind> = new Map<unknown, ModelFailureKind>([
  ['insufficient_quota', 'quota_used_up'],
  ['billing_hard_limit_reached', 'quota_used_up'],
  ['billing_not_active', 'quota_used_up'],
  ['billing_error', 'quota_used_up'],
  // Moonshot, Alibaba, Groq.
  ['exceeded_current_quota_error', 'quota_used_up'],
  ['Arrearage', 'quota_used_up'],
  ['blocked_api_access', 'quota_used_up'],
  // Google's quotas per day last longer than any budget; those per minute and all others are rate limits.
  ['PerDay', 'quota_used_up'],
  ['RESOURCE_EXHAUSTED', 'rate_limited'],
  ['API_KEY_INVALID', 'unauthorized'],
  ['model_not_found', 'model_unknown'],
  ['overloaded_error', 'overloaded'],
  ['content_filter', 'prompt_blocked'],
  ['content_policy_violation', 'prompt_blocked'],
  ['ResponsibleAIPolicyViolation', 'prompt_blocked'],
  ['invalid_prompt', 'prompt_blocked'],
  ['moderation_blocked', 'prompt_blocked'],
  ['data_inspection_failed', 'prompt_blocked'],
]);

/** Anthropic, DeepSeek, xAI and Gemini's prepaid accounts name an empty account in words alone, beside codes of other failures. */
const EMPTY_ACCOUNT_WORDS = new RegExp(
  [
    'credit balance is too low',
    'insufficient (?:balance|credits?)',
    'used all available credits',
    'reached (?:its|your) (?:monthly spending|specified API usage) limits?',
    'prepayment credits are depleted',
  ].join('|'),
  'i',
);

/** An empty account where no code says otherwise: Google says so of a limit per minute too. */
const USED_QUOTA_WORDS = /exceeded your current quota, please check your plan/i;

/**
 * The failure behind a connection error, by its code.
 *
 * @param addressSetting the setting that holds the server's address
 */
export function connectionFault(
  error: unknown,
  addressSetting: string,
): { readonly kind: ModelFailureKind; readonly why: string } {
  const code = fieldOf(error, 'code');
  if (typeof code !== 'string') return { kind: OTHER[1], why: OTHER[2] };
  const [, kind, why] = CONNECTIONS.find(([codes]) => codes.test(code)) ?? OTHER;
  // Of all resets, Node describes the connection only in that of a handshake which the server has cut off.
  const isCutOff = code === 'ECONNRESET' && error instanceof Error && 'localAddress' in error;
  const isPlain = isCutOff || NO_TLS.test(code);
  const hint = `; the server may speak plain HTTP: check ${addressSetting}, http:// for https://`;
  return { kind, why: `${why} (${code})${isPlain ? hint : ''}` };
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
  if (raw === undefined) return undefined;
  return errorMessageOf(valueOfRaw(raw)) || (typeof raw === 'string' ? raw : '');
}

function valueOfRaw(raw: unknown): unknown {
  if (typeof raw !== 'string') return raw;
  try {
    return JSON.parse(raw);
  } catch {
    return null;
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

/** What no message may quote. */
export interface Hidden {
  /** The key of the provider, or null if it has none. No piece of it may be quoted, masked or not. */
  readonly key: string | null;
  /** Prompts. */
  readonly texts: readonly string[];
}

/** A server's message on one line, bounded, with secrets replaced. */
export function redact(said: string, { key, texts }: Hidden): string {
  const whole = [key ?? '', ...texts].filter((each) => each !== '');
  const safe = whole.reduce((text, each) => text.replaceAll(each, '…'), said);
  const line = withoutPieces(safe.slice(0, 4 * MAX_WORDS_CHARS), key ?? '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > MAX_WORDS_CHARS ? `${line.slice(0, MAX_WORDS_CHARS)}…` : line;
}

/** A server's value that should be a short name, made safe for a message, with secrets replaced. */
export function redactName(name: unknown, hidden: Hidden): string {
  if (typeof name !== 'string') return typeof name;
  const safe = redact(name, hidden).replace(/[^\w-]/g, '?');
  return safe.slice(0, 60);
}

/** Most UTF-16 units quoted of a server's message: a sentence or two. */
const MAX_WORDS_CHARS = 300;

/** Of unlisted statuses those from 500 on are errors of the server. */
const STATUSES: ReadonlyMap<number, ModelFailureKind> = new Map<number, ModelFailureKind>([
  [400, 'bad_request'],
  [401, 'unauthorized'],
  [402, 'quota_used_up'],
  [403, 'forbidden'],
  [404, 'model_unknown'],
  [408, 'request_timeout'],
  [429, 'rate_limited'],
  [501, 'not_implemented'],
  [502, 'bad_gateway'],
  [503, 'unavailable'],
  [504, 'gateway_timeout'],
  // Not registered; used by Anthropic and compatible servers.
  [529, 'overloaded'],
]);

/** By error codes of Node, undici and OpenSSL. */
const CONNECTIONS: readonly (readonly [codes: RegExp, kind: ModelFailureKind, why: string])[] = [
  [/^ECONNREFUSED$/, 'connection_refused', 'the connection was refused'],
  [/^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'connection_lost', 'the connection broke'],
  [/^(?:ENOTFOUND|EAI_\w+)$/, 'host_unknown', 'its host name was not found'],
  [/^UND_ERR_ABORTED$/, 'unreachable', 'the proxy (HTTPS_PROXY) refused to connect to it'],
  [/TIMEOUT|^ETIMEDOUT$|^E\w+UNREACH$/, 'unreachable', 'it could not be reached in time'],
  [/CERT|SSL|TLS|SIGNATURE|^EPROTO$/, 'tls_failed', 'no trusted TLS connection came about'],
];

const OTHER = [/$/, 'network_error', 'the connection failed'] as const;

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
