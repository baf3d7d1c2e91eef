/** A fake Gemini that searches documents before it writes a draft, and computes vectors from the words of a text. */
import type { ProviderSettings } from '../../src/config-providers.js';
import { offlineVector } from '../../src/embeddings/offline.js';
import type { EmbeddingRequest } from './fake-embeddings.js';
import { textsIn, vectorsFor } from './fake-embeddings.js';
import type { GeminiRequest } from './fake-gemini.js';
import { says } from './fake-gemini.js';
import type { FakeServer, Script } from './fake-server.js';
import { fakeServer } from './fake-server.js';
import { providerSettings } from './provider-models.js';

export interface FakeProvider extends FakeServer<GeminiRequest & EmbeddingRequest> {
  /** Its default answers. */
  readonly usual: Script<GeminiRequest & EmbeddingRequest>;
  /** Settings of its embeddings. */
  embeddings(model?: string): ProviderSettings;
  /** Every chunk whose vector was requested, in order. */
  embedded(): readonly string[];
  /** Tool results that it received, oldest first. */
  results(): readonly string[];
}

/** @param query what each agent looks up */
export async function fakeProvider(query: string): Promise<FakeProvider> {
  const usual: Script<GeminiRequest & EmbeddingRequest> = ({ path, body }) => {
    if (isEmbedding(path)) return vectorsFor(body, (text) => [...offlineVector(text)]);
    const isAnswered = resultsIn(body).length > 0 || body.tools === undefined;
    return isAnswered ? says('A draft.') : says([{ functionCall: { name: 'pdf_reader', args: { query } } }]);
  };
  const server = await fakeServer(usual);
  return {
    ...server,
    usual,
    embeddings: (model = 'vectors-1') =>
      providerSettings('gemini', { apiKey: 'k', baseUrl: `${server.url}/v1beta`, model }),
    embedded: () =>
      server.calls.filter(({ path, body }) => isEmbedding(path) && !isQuery(body)).flatMap(({ body }) => textsIn(body)),
    results: () => server.calls.flatMap(({ path, body }) => (isEmbedding(path) ? [] : resultsIn(body))),
  };
}

function isEmbedding(path: string): boolean {
  return /:(?:batchEmbedContents|embedContent)$/.test(path);
}

function isQuery({ requests, taskType = requests?.[0]?.taskType }: EmbeddingRequest): boolean {
  return taskType === 'RETRIEVAL_QUERY';
}

function resultsIn({ contents }: GeminiRequest): readonly string[] {
  return contents.flatMap(({ parts }) => parts.flatMap((part) => part.functionResponse?.response.content ?? []));
}
