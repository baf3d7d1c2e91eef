/**
 * Gemini by its REST API, in the words of @google/generative-ai: its types and enums describe requests and answers. Calls
 * are plain HTTP, because the package, frozen upstream, hides `Retry-After`, follows redirects with the key, bounds no
 * answer, and loses parts of streamed ones.
 */
import type { System } from '../../system/system.js';
import { ModelFailed } from '../../errors.js';
import type { ModelServer } from '../exchange.js';
import { exchange, isKeyRefused, jsonIn, textsOf } from '../exchange.js';
import { kindOfStatus } from '../failed-exchange.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../port.js';
import { callAborted } from '../port.js';
import { readGeminiAnswer } from './answer.js';
import { geminiChunks, joinChunks } from './answer.js';
import type { GeminiDialect } from './request.js';
import { geminiRequest } from './request.js';

export interface GeminiOptions {
  /** Visible ASCII; sent in the header `x-goog-api-key` and nowhere else. */
  readonly apiKey: string;
  /** Base URL of the API without a trailing slash; `/v1beta/…` is appended. */
  readonly baseUrl: string;
  /** Used when a request names none. */
  readonly model: string;
  readonly system: Pick<System, 'now'>;
}

/**
 * The model behind `POST {baseUrl}/v1beta/models/{model}:generateContent`, and `:streamGenerateContent` when there is
 * an `onToken`. One request per call, because a run records its own retries, with two exceptions: a server that cannot
 * stream is called again without streaming, and a model that refuses an answer schema beside functions is called
 * without the schema. The signal aborts the request.
 *
 * A call fails with the kinds of `readGeminiAnswer` and `exchange`, or as `model_unusable` when the model's name could
 * lead to another address.
 */
export function geminiModel({ apiKey, baseUrl, model: defaultModel, system }: GeminiOptions): LanguageModel {
  function ask(name: string, request: ModelRequest, options: ExchangeOptions): Promise<ModelAnswer> {
    const { tools = [], onToken } = request;
    const hidden = [apiKey, ...textsOf(request)];
    const path = name.includes('/') ? name : `models/${name}`;
    const method = onToken === undefined ? 'generateContent' : 'streamGenerateContent?alt=sse';
    const call = {
      server: { ...SERVER, purpose: `Cannot get an answer from Gemini for model "${name}"` },
      url: `${baseUrl}/v1beta/${path}:${method}`,
      headers: { 'x-goog-api-key': apiKey },
      body: geminiRequest(request, options),
      signal: options.signal,
      hidden,
      now: system.now,
    };
    const reading = { model: name, takesCalls: tools.length > 0, hidden };
    return exchange(call, {
      async read(response) {
        if (onToken === undefined) return readGeminiAnswer(await jsonIn(response), reading);
        const answer = await joinChunks(geminiChunks(response), onToken);
        return readGeminiAnswer(answer, { ...reading, isFinished: answer.isFinished });
      },
    });
  }

  const streamOrPlain = streamedOrPlain();
  const schemaFallback = schemaOrPrompt();

  return {
    provider: 'gemini',
    defaultModel,
    async ask(request, { signal }) {
      if (signal.aborted) throw callAborted(signal);
      const name = usableName(request.model ?? defaultModel);
      return streamOrPlain(request, (each) =>
        schemaFallback(name, each, (dialect) => ask(name, each, { ...dialect, signal })),
      );
    },
  };
}

interface ExchangeOptions extends GeminiDialect {
  readonly signal: AbortSignal;
}

const SERVER: Omit<ModelServer, 'purpose'> = {
  addressSetting: 'GEMINI_BASE_URL',
  kindOf: (status, body) => (isKeyRefused(body) ? { kind: 'unauthorized', retryable: false } : kindOfStatus(status)),
  hints: new Map([
    ['unauthorized', 'check GEMINI_API_KEY'],
    ['forbidden', 'check GEMINI_API_KEY'],
    ['model_unknown', 'check GEMINI_MODEL'],
  ]),
};

/** Whether a text is a model name and nothing else: it becomes part of the URL. */
export function isModelName(text: string): boolean {
  return /^(?:(?:models|tunedModels)\/)?[A-Za-z0-9][\w.-]{0,127}$/.test(text);
}

/** What `isModelName` accepts, in words. */
export const MODEL_NAMES = 'a name of letters, digits, "-", "_" and "."';

function usableName(name: string): string {
  if (isModelName(name)) return name;
  throw new ModelFailed(`Cannot ask model ${JSON.stringify(name.slice(0, 128))}: wanted is ${MODEL_NAMES}`, {
    kind: 'model_unusable',
    retryable: false,
  });
}

type Ask = (request: ModelRequest) => Promise<ModelAnswer>;

/**
 * Makes streaming calls to a server that may not support streaming. A stream that fails in a way typical of that,
 * before its first token, is repeated as a plain call, so no run fails because somebody watches it. A server without
 * the streaming endpoint is not asked for a stream again.
 */
function streamedOrPlain(): (request: ModelRequest, ask: Ask) => Promise<ModelAnswer> {
  let cannotStream = false;
  return async ({ onToken, ...plain }, ask) => {
    if (onToken === undefined) return ask(plain);
    const streamed = cannotStream ? NOT_ASKED : await stream(plain, { ask, onToken });
    if ('text' in streamed) return streamed;
    const answer = await ask(plain);
    cannotStream ||= streamed.isAddressUnknown;
    if (answer.text !== '') onToken(answer.text);
    return answer;
  };
}

interface Unstreamed {
  readonly isAddressUnknown: boolean;
}

async function stream(
  plain: ModelRequest,
  { ask, onToken }: { readonly ask: Ask; readonly onToken: (text: string) => void },
): Promise<ModelAnswer | Unstreamed> {
  const received = { something: false };
  const listen = (text: string): void => {
    received.something = true;
    onToken(text);
  };
  try {
    return await ask({ ...plain, onToken: listen });
  } catch (error) {
    const kind = error instanceof ModelFailed ? error.data.kind : '';
    if (received.something || !(ADDRESS_UNKNOWN.has(kind) || NO_STREAM.has(kind))) throw error;
    return { isAddressUnknown: ADDRESS_UNKNOWN.has(kind) };
  }
}

const NOT_ASKED: Unstreamed = { isAddressUnknown: true };

/** 404, 405 and the like. */
const ADDRESS_UNKNOWN: ReadonlySet<string> = new Set(['model_unknown', 'http_error']);

/** Results of reading a whole or cut off answer as a stream; the next stream may be fine. */
const NO_STREAM: ReadonlySet<string> = new Set(['unreadable_answer', 'no_candidates']);

type AskInDialect = (dialect: GeminiDialect) => Promise<ModelAnswer>;

/**
 * Asks for a critique by its schema, and by the prompt alone where the model refuses a schema beside tools. The refusal
 * is remembered per model.
 */
function schemaOrPrompt(): (model: string, request: ModelRequest, ask: AskInDialect) => Promise<ModelAnswer> {
  const refusing = new Set<string>();
  return async (model, { answer, tools = [] }, ask) => {
    if (refusing.has(model)) return ask({ schemaBesideTools: false });
    try {
      return await ask({ schemaBesideTools: true });
    } catch (error) {
      const isRefused = error instanceof ModelFailed && error.data.kind === 'bad_request';
      if (!isRefused || answer !== 'critique' || tools.length === 0) throw error;
    }
    const plain = await ask({ schemaBesideTools: false });
    // Model names come from blueprints, so the set is bounded: when full it is cleared and learnt again.
    if (refusing.size >= MAX_REMEMBERED) refusing.clear();
    refusing.add(model);
    return plain;
  };
}

const MAX_REMEMBERED = 1000;
