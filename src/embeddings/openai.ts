/** Embeddings of any server with OpenAI's API: the vendor's, or a local one (Ollama, vLLM, llama.cpp). */
import { fieldOf } from '../system/untrusted.js';
import { asMuchAsFits } from './http-call.js';
import {
  askForVectors,
  failure,
  listIn,
  UNREADABLE,
  vectorIn,
  type EmbeddingDeps,
  type EmbeddingSource,
} from './http-call.js';
import { DIMENSIONS, type EmbeddingOptions, type Embeddings } from './port.js';
import { inBatches } from './port.js';

export interface OpenAiEmbeddingsOptions extends EmbeddingDeps {
  /** Sent as a bearer token and nowhere else. Null: none is sent. */
  readonly apiKey: string | null;
  /** Base URL of the API with version, without a trailing slash; `/embeddings` is appended. */
  readonly baseUrl: string;
  readonly model: string;
}

const SETTINGS = { key: 'OPENAI_API_KEY', model: 'OPENAI_EMBEDDING_MODEL', baseUrl: 'OPENAI_BASE_URL' };

/** Most texts of one request: local servers have low defaults. */
const TEXTS_AT_ONCE = 64;

/**
 * Vectors by `POST {baseUrl}/embeddings`, 768 dimensions asked for. A server that cannot cut its model's vectors
 * ignores that or refuses it; another number of dimensions than 768 is a failure, `bad_vector`. The kind of text is
 * ignored. A text that is too large for the server is embedded in parts. Requests go one after the other.
 */
export function openAiEmbeddings({ apiKey, baseUrl, model, ...deps }: OpenAiEmbeddingsOptions): Embeddings {
  const source: EmbeddingSource = { model, settings: SETTINGS };

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
    return askForVectors(call, { signal, read }, deps);
  }

  return { model, dimensions: DIMENSIONS, embed: inBatches(TEXTS_AT_ONCE, asMuchAsFits(embedAll)) };
}

/** Finds an entry by its `index`, which overrides the order of the list. */
function entryAt(data: readonly unknown[], at: number, source: EmbeddingSource): unknown {
  const entry = data.find((each) => fieldOf(each, 'index') === at) ?? data[at];
  const index = fieldOf(entry, 'index');
  if (index === at || index === undefined) return entry;
  throw failure(source, `the vector of text ${at} is missing`, UNREADABLE);
}
