/** Gemini through @google/generative-ai, which is frozen upstream and stays behind this port. */
import type { GenerationConfig, Schema } from '@google/generative-ai';
import { GoogleGenerativeAI, SchemaType } from '@google/generative-ai';
import type { Ambient } from '../ambient.js';
import { ModelFailed } from '../errors.js';
import { callAborted } from './call-aborted.js';
import type { Exchange } from './exchange.js';
import { exchangeWatch } from './exchange.js';
import { readGeminiAnswer } from './gemini-answer.js';
import { geminiFailure } from './gemini-failure.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from './port.js';

export interface GeminiOptions {
  /** Visible ASCII; sent in the header `x-goog-api-key` and nowhere else. */
  readonly apiKey: string;
  /** Where the API is, without a trailing slash: `/v1beta/…` is put after it. */
  readonly baseUrl: string;
  /** Used when a request names none. */
  readonly model: string;
  readonly ambient: Pick<Ambient, 'now'>;
}

/**
 * The model behind `POST {baseUrl}/v1beta/models/{model}:generateContent`. One request a call: a run records its own
 * retries. The signal aborts the request itself. The SDK reads an answer whole, whatever its size: what bounds it is the
 * deadline, and the council measures each text before it is recorded.
 *
 * A call fails as `readGeminiAnswer` and `geminiFailure` name it, as `aborted` by the signal, or as `model_unusable`
 * when the model's name could lead to another address.
 */
export function geminiModel({ apiKey, baseUrl, model: defaultModel, ambient }: GeminiOptions): LanguageModel {
  const gemini = new GoogleGenerativeAI(apiKey);
  const watch = exchangeWatch();

  async function generate(model: string, request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const { system: systemInstruction, prompt } = request;
    const exchange: Exchange = { retryAfter: null, brokenBy: null, redirected: false };
    const content = { model, systemInstruction, generationConfig: generationOf(request) };
    try {
      const { response } = await watch(exchange, (redirect) =>
        gemini
          .getGenerativeModel(content, { baseUrl })
          .generateContent(prompt, { signal: AbortSignal.any([signal, redirect]) }),
      );
      return readGeminiAnswer(response, model);
    } catch (error) {
      if (signal.aborted) throw callAborted(signal);
      if (error instanceof ModelFailed) throw error;
      throw geminiFailure(error, { model, exchange, now: ambient.now(), hidden: [apiKey, prompt, systemInstruction] });
    }
  }

  return {
    provider: 'gemini',
    defaultModel,
    async ask(request, signal) {
      // The SDK only listens for aborts to come.
      if (signal.aborted) throw callAborted(signal);
      return generate(usableName(request.model ?? defaultModel), request, signal);
    },
  };
}

/** Whether a text names a model and nothing else: it becomes part of the address. */
export function isModelName(text: string): boolean {
  return /^(?:(?:models|tunedModels)\/)?[A-Za-z0-9][\w.-]{0,127}$/.test(text);
}

/** What `isModelName` takes, in words. */
export const MODEL_NAMES = 'a name of letters, digits, "-", "_" and "."';

function usableName(name: string): string {
  if (isModelName(name)) return name;
  throw new ModelFailed(`Cannot ask model ${JSON.stringify(name.slice(0, 128))}: wanted is ${MODEL_NAMES}`, {
    kind: 'model_unusable',
    retryable: false,
  });
}

function generationOf({ temperature, maxOutputTokens, answer }: ModelRequest): GenerationConfig {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(answer === 'critique' && { responseMimeType: 'application/json', responseSchema: CRITIC_ANSWER }),
  };
}

/** schemas/critic-answer.json in Gemini's dialect, as far as the SDK's types know it: no `minimum`, `maximum`. The prompt names them. */
const CRITIC_ANSWER: Schema = {
  type: SchemaType.OBJECT,
  description: 'What a critic is asked to answer.',
  required: ['score', 'feedback'],
  properties: {
    score: { type: SchemaType.NUMBER, description: 'From 0 to 10; 8 or more approves the draft.' },
    feedback: { type: SchemaType.STRING, description: 'What would raise the score.' },
  },
};
