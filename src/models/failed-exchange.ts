/** Classifies failed HTTP exchanges with a model's server, the same for every provider. */
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import { fieldOf, jsonIn, listOf } from '../system/untrusted.js';

/**
 * A failure of this kind; the kind decides whether the call may be repeated.
 *
 * @param waitMs that the server asks for before the next request, or null if it asks for none
 */
export function modelFailed(message: string, kind: ModelFailureKind, waitMs: number | null = null): ModelFailed {
  const wait = waitMs === null ? {} : { retryAfterMs: waitMs };
  return new ModelFailed(message, { kind, retryable: RETRYABLE.has(kind), ...wait });
}

/** What may pass by itself, or come out differently. */
const RETRYABLE: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['request_timeout', 'rate_limited', 'server_error', 'bad_gateway', 'unavailable', 'overloaded'] as const),
  ...(['gateway_timeout', 'connection_refused', 'connection_lost', 'host_unknown', 'unreachable'] as const),
  ...(['network_error', 'timeout', 'unreadable_answer', 'error_answer', 'no_candidates', 'no_choices'] as const),
  ...(['no_text', 'empty_answer', 'thoughts_only', 'recitation', 'other', 'malformed_function_call'] as const),
  ...(['not_configured'] as const),
]);

/**
 * The kind of failure behind a refusal. Codes in the body decide before the status: routers and filters use the status of
 * a bad request, a rate limit or an outage for failures that no retry can fix.
 *
 * @param body the parsed body, or its text where it is not JSON
 */
export function kindOfRefusal(status: number, body: unknown): ModelFailureKind {
  // Groq adds the code of a rate limit, but no wait makes the request smaller.
  if (status === 413) return 'input_too_large';
  const said = typeof body === 'string' ? body : errorMessageOf(body);
  const isEmptyAccount = status < 500 && EMPTY_ACCOUNT_WORDS.test(said);
  const kind = isEmptyAccount ? 'quota_used_up' : (kindByCode(body) ?? kindByWords(status, said));
  return kind ?? STATUSES.get(status) ?? (status >= 500 ? 'server_error' : 'http_error');
}

/**
 * The kind of failure that a refusal is recorded as. A bad request stays one even if it names an unknown model: a run
 * does not fall back after it (contract, section 6.1).
 *
 * @param meant the kind by `kindOfRefusal`
 */
export function recordedKind(status: number, meant: ModelFailureKind): ModelFailureKind {
  return meant === 'model_unknown' && (status === 400 || status === 422) ? 'bad_request' : meant;
}

function kindByCode(body: unknown): ModelFailureKind | undefined {
  if (isBlocked(body)) return 'prompt_blocked';
  return kindOfCodes(codesOf(body));
}

function kindOfCodes(codes: readonly unknown[]): ModelFailureKind | undefined {
  const texts = codes.filter((code) => typeof code === 'string');
  return KINDS_OF_CODES.find(([known]) => texts.some((code) => known.test(code)))?.[1];
}

function kindByWords(status: number, said: string): ModelFailureKind | undefined {
  if (status < 500 && USED_QUOTA_WORDS.test(said)) return 'quota_used_up';
  return (status === 400 || status === 422) && UNKNOWN_MODEL_WORDS.test(said) ? 'model_unknown' : undefined;
}

/** Whether an error says that a filter stopped the prompt: in its code, its inner code, or what a router adds to it. */
export function isBlocked(body: unknown): boolean {
  const flagged = fieldOf(fieldOf(fieldOf(body, 'error'), 'metadata'), 'flagged_input');
  return flagged !== undefined || codesOf(body).some((code) => kindOfCodes([code]) === 'prompt_blocked');
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

/**
 * Codes of OpenAI, Azure, Google, Anthropic, Moonshot, Alibaba, Groq and others. Many answer 429 for an empty account too.
 * Google's quotas per day last longer than any budget; those per minute and all others are rate limits.
 */
const KINDS_OF_CODES: readonly (readonly [codes: RegExp, kind: ModelFailureKind])[] = [
  [/^(?:insufficient_quota|billing_(?:hard_limit_reached|not_active|error))$/, 'quota_used_up'],
  [/^(?:exceeded_current_quota_error|Arrearage|blocked_api_access|PerDay)$/, 'quota_used_up'],
  [/^(?:content_filter|content_policy_violation|ResponsibleAIPolicyViolation)$/, 'prompt_blocked'],
  [/^(?:invalid_prompt|moderation_blocked|data_inspection_failed)$/, 'prompt_blocked'],
  [/^API_KEY_INVALID$/, 'unauthorized'],
  [/^model_not_found$/, 'model_unknown'],
  [/^(?:overloaded_error|capacity_exceeded)$/, 'overloaded'],
  [/^(?:RESOURCE_EXHAUSTED|rate_limit_(?:error|exceeded)|too_many_requests)$/, 'rate_limited'],
];

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
 * The failure that an error of Node or undici stands for, by its code, or null if it has none.
 *
 * @param addressSetting the setting that holds the server's address
 */
export function connectionFault(
  error: Error,
  addressSetting: string,
): { readonly kind: ModelFailureKind; readonly why: string } | null {
  const code = fieldOf(error, 'code');
  if (typeof code !== 'string') return null;
  const [, kind, why] = CONNECTIONS.find(([codes]) => codes.test(code)) ?? OTHER;
  // Of all resets, Node describes the connection only in that of a handshake which the server has cut off.
  const isCutOff = code === 'ECONNRESET' && 'localAddress' in error;
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
  return typeof raw === 'string' ? jsonIn(raw) : raw;
}

/**
 * Whether a failure of this kind is an outage of the server, a rate limit or a provider that is not configured: they pass,
 * and no request causes them.
 */
export function isOutage(kind: ModelFailureKind): boolean {
  return OUTAGES.has(kind);
}

/** Whether a failure of this kind shows that the server has answered, even if with a refusal. */
export function isAnswer(kind: ModelFailureKind): boolean {
  return !isOutage(kind) && kind !== 'timeout' && kind !== 'network_error';
}

/** Of unlisted statuses those from 500 on are errors of the server. Status 529 is not registered; Anthropic and others use it. */
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
  // Cloudflare cannot connect to the server behind it, or waits in vain for its answer.
  ...([521, 522, 523] as const).map((status) => [status, 'bad_gateway'] as const),
  [524, 'gateway_timeout'],
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

const OTHER = [null, 'network_error', 'the connection failed'] as const;

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
  ...(['bad_gateway', 'unavailable', 'overloaded', 'rate_limited'] as const),
  ...(['connection_refused', 'connection_lost', 'host_unknown', 'unreachable', 'not_configured'] as const),
]);
