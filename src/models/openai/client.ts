/** Any server that speaks OpenAI's chat completions: the vendor's, or a local one (Ollama, vLLM, llama.cpp). */
import type { System } from '../../system/system.js';
import { BodyTooLarge, boundedText, fieldOf } from '../../system/untrusted.js';
import { ModelFailed } from '../../errors.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../port.js';
import { callAborted } from '../port.js';
import type { OpenAiReading } from './answer.js';
import { isBlocked, readOpenAiAnswer, unusable } from './answer.js';
import type { Dialect } from './request.js';
import { FIRST_DIALECT, openAiRequest, plainerDialect } from './request.js';
import { joinCompletion } from './stream.js';
import type { FaultKind } from '../failed-exchange.js';
import {
  hintOfConnection,
  isModelUnknown,
  kindOfConnection,
  kindOfStatus,
  quoted,
  waitOfHeader,
  wordsOfError,
} from '../failed-exchange.js';

export interface OpenAiOptions {
  /** Visible ASCII; sent as a bearer token and nowhere else. Null: none is sent. */
  readonly apiKey: string | null;
  /** Base URL of the API with version, without a trailing slash; `/chat/completions` is appended. */
  readonly baseUrl: string;
  /** Used when a request names none. */
  readonly model: string;
  readonly system: Pick<System, 'now'>;
}

/** The result of one exchange: an answer, or a refusal that another dialect might avoid. */
type Exchanged =
  | { readonly isAnswered: true; readonly answer: ModelAnswer }
  | { readonly isAnswered: false; readonly said: string; readonly failure: ModelFailed };

/**
 * The model behind `POST {baseUrl}/chat/completions`. A request that the server refuses (400, 422) is repeated in
 * plainer dialects: a JSON schema, then any JSON, then the prompt alone (beside tools the schema or the prompt); the
 * accepted dialect is remembered for the model. Otherwise one request per call: a run records its own retries.
 * Redirects are not followed, because the key would go with them. The signal aborts the request.
 */
export function openAiModel({ apiKey, baseUrl, model: defaultModel, system }: OpenAiOptions): LanguageModel {
  const dialects = new Map<string, Dialect>();

  async function exchange(model: string, request: ModelRequest, options: ExchangeOptions): Promise<Exchanged> {
    const { signal, call, dialect } = options;
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(apiKey !== null && { Authorization: `Bearer ${apiKey}` }) },
      body: JSON.stringify(openAiRequest(model, request, dialect)),
      redirect: 'manual',
      signal,
    });
    if (response.ok) return { isAnswered: true, answer: await readAnswer(response, request, call) };
    const said = await boundedText(response, MAX_ERROR_BYTES).catch(() => '');
    const failure = statusFailure(response, said, call);
    const isBadRequest = response.status === 400 || response.status === 422;
    if (!isBadRequest || NOT_OF_WORDS.has(failure.data.kind)) throw failure;
    return { isAnswered: false, said, failure };
  }

  async function generate(
    model: string,
    request: ModelRequest,
    options: Omit<ExchangeOptions, 'dialect'>,
  ): Promise<ModelAnswer> {
    let dialect: Dialect | null = dialects.get(model) ?? FIRST_DIALECT;
    for (;;) {
      const exchanged = await exchange(model, request, { ...options, dialect });
      if (exchanged.isAnswered) {
        remember(dialects, model, dialect);
        return exchanged.answer;
      }
      dialect = plainerDialect(dialect, request, exchanged.said);
      if (dialect === null) throw exchanged.failure;
    }
  }

  async function askFor(model: string, request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const results = request.rounds?.flatMap(({ exchanges }) => exchanges.map(({ result }) => result)) ?? [];
    const hidden = [apiKey ?? '', request.prompt, request.system, ...results];
    const call = { model, now: system.now(), hidden };
    try {
      return await generate(model, request, { signal, call });
    } catch (error) {
      if (signal.aborted) throw callAborted(signal);
      throw error instanceof ModelFailed ? error : thrownFailure(error, call);
    }
  }

  return {
    provider: 'openai',
    defaultModel,
    async ask(request, { signal }) {
      if (signal.aborted) throw callAborted(signal);
      return askFor(request.model ?? defaultModel, request, signal);
    },
  };
}

/** Refusals that no other dialect avoids. */
const NOT_OF_WORDS: ReadonlySet<string> = new Set(['model_unknown', 'prompt_blocked', 'quota_used_up']);

interface ExchangeOptions {
  readonly signal: AbortSignal;
  readonly call: FailedCall;
  readonly dialect: Dialect;
}

/** Some servers answer a streaming request with a whole body, so the content type decides, not the request. */
async function readAnswer(response: Response, request: ModelRequest, call: FailedCall): Promise<ModelAnswer> {
  const { onToken, tools = [], rounds = [] } = request;
  const { model, hidden } = call;
  const reading: OpenAiReading = { model, takesCalls: tools.length > 0, rounds: rounds.length, hidden };
  if (!(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
    const answer = readOpenAiAnswer(JSON.parse(await boundedText(response, MAX_ANSWER_BYTES)), reading);
    if (answer.text !== '') onToken?.(answer.text);
    return answer;
  }
  const joined = await joinCompletion(response, MAX_ANSWER_BYTES, (text) => onToken?.(text));
  if (!joined.isFinished) throw unusable(model, 'the stream of its answer broke off', 'unreadable_answer', true);
  return readOpenAiAnswer(joined.body, reading);
}

/** Model names come from blueprints, so the map is bounded: when full it is cleared and learnt again. */
function remember(dialects: Map<string, Dialect>, model: string, dialect: Dialect): void {
  if (dialects.size >= MAX_DIALECTS) dialects.clear();
  dialects.set(model, dialect);
}

const MAX_DIALECTS = 1000;

/** Largest answer in bytes. A draft takes 128 KiB; a stream adds some 200 bytes per token. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Most bytes read of the body of an error status. */
const MAX_ERROR_BYTES = 64 * 1024;

// Classifies failed calls to an OpenAI-compatible server.

export interface FailedCall {
  readonly model: string;
  /** ISO 8601. */
  readonly now: string;
  /** Texts that no message may quote: the key, the prompt. */
  readonly hidden: readonly string[];
}

/** The failure behind an error status; `body` is the response's text. */
export function statusFailure(response: Response, body: string, call: FailedCall): ModelFailed {
  const { status, headers } = response;
  if (status >= 300 && status < 400) return failure(call, 'it answered with a redirect', 'redirected', false);
  const parsedBody = parsed(body);
  const { kind, retryable } = kindOf(status, parsedBody);
  const words = quoted(wordsOfError(parsedBody), call.hidden);
  const hint = HINTS.get(kind);
  const retryAfterMs = waitOfHeader(headers.get('retry-after'), call.now);
  const why = `it answered ${status}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  return new ModelFailed(`${about(call)}: ${why}`, { kind, retryable, ...(retryAfterMs !== null && { retryAfterMs }) });
}

/** The failure behind an error of fetch or of reading the body. It has no `cause`: that may quote the server. */
export function thrownFailure(error: unknown, call: FailedCall): ModelFailed {
  if (error instanceof BodyTooLarge) return failure(call, 'its answer is too large', 'answer_too_large', false);
  if (error instanceof SyntaxError) {
    const what = error.message.startsWith('Unexpected end') ? 'empty or cut off' : 'no JSON';
    return failure(call, `the body of its answer is ${what}`, 'unreadable_answer', true);
  }
  const code = fieldOf(fieldOf(error, 'cause'), 'code');
  const { why, kind, retryable } = kindOfConnection(typeof code === 'string' ? code : null);
  if (typeof code !== 'string') return failure(call, why, kind, retryable);
  return failure(call, `${why} (${code})${hintOfConnection(code, 'OPENAI_BASE_URL')}`, kind, retryable);
}

function failure(call: FailedCall, why: string, kind: string, retryable: boolean): ModelFailed {
  return new ModelFailed(`${about(call)}: ${why}`, { kind, retryable });
}

function about({ model }: FailedCall): string {
  return `Cannot get an answer from the OpenAI-compatible server for model "${model}"`;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/** Routers and filters use the status of a bad request or an outage for failures that no retry can fix. */
function kindOf(status: number, body: unknown): FaultKind {
  const code = fieldOf(fieldOf(body, 'error'), 'code');
  if (code === 'insufficient_quota') return QUOTA_USED_UP;
  if (isBlocked(body)) return PROMPT_BLOCKED;
  if (code === 'model_not_found' || isModelUnknown(status, wordsOfError(body))) return MODEL_UNKNOWN;
  return kindOfStatus(status);
}

/** OpenAI answers 429 for an empty account too, where waiting does not help. */
const QUOTA_USED_UP = { kind: 'quota_used_up', retryable: false };
const PROMPT_BLOCKED = { kind: 'prompt_blocked', retryable: false };
const MODEL_UNKNOWN = { kind: 'model_unknown', retryable: false };

/** The likely cause of a refusal, mostly a setting. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['unauthorized', 'check OPENAI_API_KEY'],
  ['forbidden', 'check OPENAI_API_KEY'],
  ['model_unknown', 'check OPENAI_MODEL and OPENAI_BASE_URL'],
  ['prompt_blocked', 'the prompt was blocked'],
]);
