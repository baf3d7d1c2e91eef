/** A Gemini that looks things up in documents before it drafts, and embeds texts by the words in them. */
import { offlineVector } from '../../src/embeddings/offline.js';
import type { EmbeddingRequest } from './fake-embeddings.js';
import type { GeminiRequest } from './fake-gemini.js';
import { says } from './fake-gemini.js';
import type { FakeServer, Script } from './fake-server.js';
import { fakeServer, sends } from './fake-server.js';

export interface FakeProvider extends FakeServer<GeminiRequest & EmbeddingRequest> {
  /** Its default answers. */
  readonly usual: Script<GeminiRequest & EmbeddingRequest>;
  /** Settings of its embeddings. */
  embeddings(model?: string): { name: 'gemini'; apiKey: string; baseUrl: string; model: string };
  /** Every chunk whose vector was requested, in order. */
  embedded(): readonly string[];
  /** Tool results that it received, oldest first. */
  results(): readonly string[];
}

/** @param query what each agent looks up */
export async function fakeProvider(query: string): Promise<FakeProvider> {
  const usual: Script<GeminiRequest & EmbeddingRequest> = ({ path, body }) => {
    if (path.endsWith(':batchEmbedContents')) {
      return sends({ embeddings: textsIn(body).map((text) => ({ values: [...offlineVector(text)] })) });
    }
    const isAnswered = resultsIn(body).length > 0 || body.tools === undefined;
    return isAnswered ? says('A draft.') : says([{ functionCall: { name: 'pdf_reader', args: { query } } }]);
  };
  const server = await fakeServer(usual);
  return {
    ...server,
    usual,
    embeddings: (model = 'vectors-1') => ({ name: 'gemini', apiKey: 'k', baseUrl: server.url, model }),
    embedded: () =>
      server.calls
        .filter(({ path, body }) => path.endsWith(':batchEmbedContents') && !isQuery(body))
        .flatMap(({ body }) => textsIn(body)),
    results: () =>
      server.calls.flatMap(({ path, body }) => (path.endsWith(':batchEmbedContents') ? [] : resultsIn(body))),
  };
}

function isQuery({ requests }: EmbeddingRequest): boolean {
  return requests[0]?.taskType === 'RETRIEVAL_QUERY';
}

function textsIn({ requests }: EmbeddingRequest): readonly string[] {
  return requests.map(({ content }) => content.parts[0]?.text ?? '');
}

function resultsIn({ contents }: GeminiRequest): readonly string[] {
  return contents.flatMap(({ parts }) => parts.flatMap((part) => part.functionResponse?.response.result ?? []));
}
