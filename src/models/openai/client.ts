/** Any server that speaks OpenAI's chat completions: the vendor's, or a local one (Ollama, vLLM, llama.cpp). */
import type { System } from '../../system/system.js';
import { fieldOf } from '../../system/untrusted.js';
import type { ModelFailed } from '../../errors.js';
import type { ModelServer } from '../exchange.js';
import { exchange, jsonIn, textsOf } from '../exchange.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../port.js';
import { callAborted } from '../port.js';
import type { OpenAiReading } from './answer.js';
import { isBlocked, readOpenAiAnswer, unusable } from './answer.js';
import type { Dialect } from './request.js';
import { FIRST_DIALECT, openAiRequest, plainerDialect } from './request.js';
import { joinCompletion } from './answer.js';
import type { FaultKind } from '../failed-exchange.js';
import { isModelUnknown, kindOfStatus, errorMessageOf } from '../failed-exchange.js';

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

  function send(model: string, request: ModelRequest, { signal, dialect }: SendOptions): Promise<Exchanged> {
    const hidden = [apiKey ?? '', ...textsOf(request)];
    const call = {
      server: { ...SERVER, purpose: `Cannot get an answer from the OpenAI-compatible server for model "${model}"` },
      url: `${baseUrl}/chat/completions`,
      headers: apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` },
      body: openAiRequest(model, request, dialect),
      signal,
      hidden,
      now: system.now,
    };
    return exchange<Exchanged>(call, {
      read: async (response) => ({
        isAnswered: true,
        answer: await readAnswer(response, request, { model, hidden }),
      }),
      refused(failure, { status, said }) {
        const isBadRequest = status === 400 || status === 422;
        if (!isBadRequest || NOT_OF_WORDS.has(failure.data.kind)) throw failure;
        return { isAnswered: false, said, failure };
      },
    });
  }

  async function generate(model: string, request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    let dialect: Dialect | null = dialects.get(model) ?? FIRST_DIALECT;
    for (;;) {
      const exchanged = await send(model, request, { signal, dialect });
      if (exchanged.isAnswered) {
        remember(dialects, model, dialect);
        return exchanged.answer;
      }
      dialect = plainerDialect(dialect, request, exchanged.said);
      if (dialect === null) throw exchanged.failure;
    }
  }

  return {
    provider: 'openai',
    defaultModel,
    async ask(request, { signal }) {
      if (signal.aborted) throw callAborted(signal);
      return generate(request.model ?? defaultModel, request, signal);
    },
  };
}

/** Refusals that no other dialect avoids. */
const NOT_OF_WORDS: ReadonlySet<string> = new Set(['model_unknown', 'prompt_blocked', 'quota_used_up']);

interface SendOptions {
  readonly signal: AbortSignal;
  readonly dialect: Dialect;
}

/** Some servers answer a streaming request with a whole body, so the content type decides, not the request. */
async function readAnswer(
  response: Response,
  { onToken, tools = [], rounds = [] }: ModelRequest,
  { model, hidden }: Pick<OpenAiReading, 'model' | 'hidden'>,
): Promise<ModelAnswer> {
  const reading: OpenAiReading = { model, takesCalls: tools.length > 0, rounds: rounds.length, hidden };
  if (!(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
    const answer = readOpenAiAnswer(await jsonIn(response), reading);
    if (answer.text !== '') onToken?.(answer.text);
    return answer;
  }
  const joined = await joinCompletion(response, (text) => onToken?.(text));
  if (!joined.isFinished) throw unusable(model, 'the stream of its answer broke off', 'unreadable_answer', true);
  return readOpenAiAnswer(joined.body, reading);
}

/** Model names come from blueprints, so the map is bounded: when full it is cleared and learnt again. */
function remember(dialects: Map<string, Dialect>, model: string, dialect: Dialect): void {
  if (dialects.size >= MAX_DIALECTS) dialects.clear();
  dialects.set(model, dialect);
}

const MAX_DIALECTS = 1000;

const SERVER: Omit<ModelServer, 'purpose'> = {
  addressSetting: 'OPENAI_BASE_URL',
  kindOf,
  hints: new Map([
    ['unauthorized', 'check OPENAI_API_KEY'],
    ['forbidden', 'check OPENAI_API_KEY'],
    ['model_unknown', 'check OPENAI_MODEL and OPENAI_BASE_URL'],
    ['prompt_blocked', 'the prompt was blocked'],
  ]),
};

/** Routers and filters use the status of a bad request or an outage for failures that no retry can fix. */
function kindOf(status: number, body: unknown): FaultKind {
  const code = fieldOf(fieldOf(body, 'error'), 'code');
  if (code === 'insufficient_quota') return QUOTA_USED_UP;
  if (isBlocked(body)) return PROMPT_BLOCKED;
  if (code === 'model_not_found' || isModelUnknown(status, errorMessageOf(body))) return MODEL_UNKNOWN;
  return kindOfStatus(status);
}

/** OpenAI answers 429 for an empty account too, where waiting does not help. */
const QUOTA_USED_UP = { kind: 'quota_used_up', retryable: false } as const;
const PROMPT_BLOCKED = { kind: 'prompt_blocked', retryable: false } as const;
const MODEL_UNKNOWN = { kind: 'model_unknown', retryable: false } as const;
