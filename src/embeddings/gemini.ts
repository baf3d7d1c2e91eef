/** Embeddings of Gemini over plain HTTP: the SDK's types lack `outputDimensionality`, and it hides headers. */
import { fieldOf } from '../system/untrusted.js';
import { asMuchAsFits } from './http-call.js';
import { askForVectors, listIn, vectorIn, type EmbeddingDeps, type EmbeddingSource } from './http-call.js';
import { DIMENSIONS, type EmbeddingOptions, type Embeddings } from './port.js';
import { inBatches } from './port.js';

export interface GeminiEmbeddingsOptions extends EmbeddingDeps {
  /** Sent in the header `x-goog-api-key` and nowhere else. */
  readonly apiKey: string;
  /** Base URL of the API without a trailing slash; `/v1beta/…` is appended. */
  readonly baseUrl: string;
  /** A name accepted by `isModelName`: it becomes part of the URL. */
  readonly model: string;
}

const SETTINGS = { key: 'GEMINI_API_KEY', model: 'GEMINI_EMBEDDING_MODEL', baseUrl: 'GEMINI_BASE_URL' };

/** Most texts of one request, a limit of the API. */
const TEXTS_AT_ONCE = 100;

/**
 * Vectors by `POST {baseUrl}/v1beta/models/{model}:batchEmbedContents`, 768 dimensions asked for. Those are cut off the
 * model's 3,072 and no longer of length 1 (ai.google.dev/gemini-api/docs/embeddings), so they are normalised here.
 * Requests go one after the other.
 */
export function geminiEmbeddings({ apiKey, baseUrl, model, ...deps }: GeminiEmbeddingsOptions): Embeddings {
  const source: EmbeddingSource = { model, settings: SETTINGS };
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
    return askForVectors(call, { signal, read }, deps);
  }

  return { model, dimensions: DIMENSIONS, embed: inBatches(TEXTS_AT_ONCE, asMuchAsFits(embedAll)) };
}
