/** Any server that speaks OpenAI's chat completions: the vendor's, or a local one (Ollama, vLLM, llama.cpp). */
import type { System } from '../../system/system.js';
import { boundedText } from '../../system/untrusted.js';
import { ModelFailed } from '../../errors.js';
import { callAborted } from '../port.js';
import type { OpenAiReading } from './answer.js';
import { readOpenAiAnswer, unusable } from './answer.js';
import type { FailedCall } from './failure.js';
import { statusFailure, thrownFailure } from './failure.js';
import type { Dialect } from './request.js';
import { FIRST_DIALECT, openAiRequest, plainerDialect } from './request.js';
import { joinCompletion } from './stream.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../port.js';

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
