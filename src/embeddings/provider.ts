import { ConfigInvalid, ModelFailed } from '../errors.js';
import type { EmbeddingOptions, Embeddings } from './port.js';
import { DIMENSIONS, inBatches } from './port.js';
import type { System } from '../system/system.js';
import type { Config } from '../config.js';
import type { EmbeddingDeps, EmbeddingSource } from './http-call.js';
import {
  EMBEDDING_LIMITS,
  UNREADABLE,
  splittingToFit,
  requestVectors,
  failure,
  listIn,
  vectorIn,
} from './http-call.js';
import { offlineEmbeddings } from './offline.js';
import { fieldOf } from '../system/untrusted.js';

/** Reports a permanent failure of an embedding provider once, and again after a success or another kind of failure. */
export function reportFailureOnce(embeddings: Embeddings, report: (failure: ModelFailed) => void): Embeddings {
  let reported: string | null = null;
  return {
    ...embeddings,
    async embed(texts, options) {
      try {
        const vectors = await embeddings.embed(texts, options);
        if (texts.length > 0) reported = null;
        return vectors;
      } catch (error) {
        if (isPermanent(error) && error.data.kind !== reported) {
          reported = error.data.kind;
          report(error);
        }
        throw error;
      }
    },
  };
}

/** Whether a failure to embed repeats until the operator changes a setting, here or at the server. */
export function isPermanent(error: unknown): error is ModelFailed {
  return error instanceof ModelFailed && !error.data.retryable;
}

// The embeddings that the settings choose.

/**
 * Builds the adapter of a provider. Sends nothing.
 *
 * @throws {ConfigInvalid} if `GEMINI_EMBEDDING_MODEL` is no valid name
 */
export async function embeddingsOf(
  settings: Config['embeddings'],
  system: Pick<System, 'after' | 'now' | 'random'>,
): Promise<Embeddings> {
  switch (settings.name) {
    case 'offline':
      return offlineEmbeddings();
    case 'gemini': {
      const { isModelName, MODEL_NAMES } = await import('../models/gemini/client.js');
      if (!isModelName(settings.model)) {
        throw new ConfigInvalid({
          variable: 'GEMINI_EMBEDDING_MODEL',
          value: settings.model,
          accepted: MODEL_NAMES,
        });
      }
      return geminiEmbeddings({ ...settings, limits: EMBEDDING_LIMITS, system });
    }
    case 'openai':
      return openAiEmbeddings({ ...settings, limits: EMBEDDING_LIMITS, system });
    default:
      return settings satisfies never;
  }
}

// Gemini over plain HTTP: the types of the SDK lack `outputDimensionality`, and it hides headers.

export interface GeminiEmbeddingsOptions extends EmbeddingDeps {
  /** Sent in the header `x-goog-api-key` and nowhere else. */
  readonly apiKey: string;
  /** Base URL of the API without a trailing slash; `/v1beta/…` is appended. */
  readonly baseUrl: string;
  /** A name accepted by `isModelName`: it becomes part of the URL. */
  readonly model: string;
}

const GEMINI_SETTINGS = { key: 'GEMINI_API_KEY', model: 'GEMINI_EMBEDDING_MODEL', baseUrl: 'GEMINI_BASE_URL' };

/** Most texts of one request, a limit of the API. */
const GEMINI_TEXTS_AT_ONCE = 100;

/**
 * Vectors by `POST {baseUrl}/v1beta/models/{model}:batchEmbedContents`, one request after the other. The server cuts the
 * model's 3,072 dimensions to 768 (ai.google.dev/gemini-api/docs/embeddings), so the vectors are normalised here.
 */
export function geminiEmbeddings({ apiKey, baseUrl, model, ...deps }: GeminiEmbeddingsOptions): Embeddings {
  const source: EmbeddingSource = { model, settings: GEMINI_SETTINGS };
  const path = /^(?:models|tunedModels)\//.test(model) ? model : `models/${model}`;

  function embedAll(texts: readonly string[], { kind, signal }: EmbeddingOptions): Promise<readonly Float32Array[]> {
    const taskType = kind === 'query' ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT';
    const requests = texts.map((text) => ({
      model: path,
      content: { parts: [{ text }] },
      taskType,
      outputDimensionality: DIMENSIONS,
    }));
    const call = {
      url: `${baseUrl}/v1beta/${path}:batchEmbedContents`,
      headers: { 'x-goog-api-key': apiKey },
      body: { requests },
      source,
      hidden: [apiKey, ...texts],
    };
    const read = (answer: unknown): readonly Float32Array[] =>
      listIn(answer, 'embeddings', texts.length, source).map((each) =>
        vectorIn(fieldOf(each, 'values'), DIMENSIONS, source),
      );
    return requestVectors(call, { signal, read }, deps);
  }

  return { model, dimensions: DIMENSIONS, embed: inBatches(GEMINI_TEXTS_AT_ONCE, splittingToFit(embedAll)) };
}

// Any server with OpenAI's API: the vendor's or a local one (Ollama, vLLM, llama.cpp).

export interface OpenAiEmbeddingsOptions extends EmbeddingDeps {
  /** Sent as a bearer token and nowhere else, or null to send none. */
  readonly apiKey: string | null;
  /** Base URL of the API with version, without a trailing slash; `/embeddings` is appended. */
  readonly baseUrl: string;
  readonly model: string;
}

const OPENAI_SETTINGS = { key: 'OPENAI_API_KEY', model: 'OPENAI_EMBEDDING_MODEL', baseUrl: 'OPENAI_BASE_URL' };

/** Most texts of one request: local servers have low defaults. */
const OPENAI_TEXTS_AT_ONCE = 64;

/**
 * Vectors by `POST {baseUrl}/embeddings`, one request after the other. Asks for 768 dimensions; an answer with another
 * number fails as `bad_vector`. Ignores the kind of text. Embeds a text that is too large for the server in parts.
 */
export function openAiEmbeddings({ apiKey, baseUrl, model, ...deps }: OpenAiEmbeddingsOptions): Embeddings {
  const source: EmbeddingSource = { model, settings: OPENAI_SETTINGS };

  function embedAll(texts: readonly string[], { signal }: EmbeddingOptions): Promise<readonly Float32Array[]> {
    const call = {
      url: `${baseUrl}/embeddings`,
      headers: apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` },
      body: { model, input: texts, dimensions: DIMENSIONS, encoding_format: 'float' },
      source,
      hidden: [apiKey ?? '', ...texts],
    };
    const read = (answer: unknown): readonly Float32Array[] => {
      const data = listIn(answer, 'data', texts.length, source);
      return texts.map((_, at) => vectorIn(fieldOf(entryAt(data, at, source), 'embedding'), DIMENSIONS, source));
    };
    return requestVectors(call, { signal, read }, deps);
  }

  return { model, dimensions: DIMENSIONS, embed: inBatches(OPENAI_TEXTS_AT_ONCE, splittingToFit(embedAll)) };
}

/** Finds an entry by its `index`, which takes precedence over the order of the list. */
function entryAt(data: readonly unknown[], at: number, source: EmbeddingSource): unknown {
  const entry = data.find((each) => fieldOf(each, 'index') === at) ?? data[at];
  const index = fieldOf(entry, 'index');
  if (index === at || index === undefined) return entry;
  throw failure(source, `the vector of text ${at} is missing`, UNREADABLE);
}
