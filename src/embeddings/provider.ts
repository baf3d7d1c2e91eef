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

/**
 * Reports each lasting failure of an embedding provider once, not for every text: again only after a success, or for
 * another kind of failure.
 */
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

/** Whether a failure to embed stays until somebody changes a setting, here or at the server. */
export function isPermanent(error: unknown): error is ModelFailed {
  return error instanceof ModelFailed && !error.data.retryable;
}

// The embeddings that the environment chooses.

/**
 * Builds the adapter of a provider; sends nothing.
 *
 * @throws {ConfigInvalid} for a `GEMINI_EMBEDDING_MODEL` that cannot be a name
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

// Embeddings of Gemini over plain HTTP: the SDK's types lack `outputDimensionality`, and it hides headers.

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
 * Vectors by `POST {baseUrl}/v1beta/models/{model}:batchEmbedContents`, 768 dimensions asked for. Those are cut off the
 * model's 3,072 and no longer of length 1 (ai.google.dev/gemini-api/docs/embeddings), so they are normalised here.
 * Requests go one after the other.
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

// Embeddings of any server with OpenAI's API: the vendor's, or a local one (Ollama, vLLM, llama.cpp).

export interface OpenAiEmbeddingsOptions extends EmbeddingDeps {
  /** Sent as a bearer token and nowhere else. Null: none is sent. */
  readonly apiKey: string | null;
  /** Base URL of the API with version, without a trailing slash; `/embeddings` is appended. */
  readonly baseUrl: string;
  readonly model: string;
}

const OPENAI_SETTINGS = { key: 'OPENAI_API_KEY', model: 'OPENAI_EMBEDDING_MODEL', baseUrl: 'OPENAI_BASE_URL' };

/** Most texts of one request: local servers have low defaults. */
const OPENAI_TEXTS_AT_ONCE = 64;

/**
 * Vectors by `POST {baseUrl}/embeddings`, 768 dimensions asked for. A server that cannot cut its model's vectors
 * ignores that or refuses it; another number of dimensions than 768 is a failure, `bad_vector`. The kind of text is
 * ignored. A text that is too large for the server is embedded in parts. Requests go one after the other.
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

/** Finds an entry by its `index`, which overrides the order of the list. */
function entryAt(data: readonly unknown[], at: number, source: EmbeddingSource): unknown {
  const entry = data.find((each) => fieldOf(each, 'index') === at) ?? data[at];
  const index = fieldOf(entry, 'index');
  if (index === at || index === undefined) return entry;
  throw failure(source, `the vector of text ${at} is missing`, UNREADABLE);
}
