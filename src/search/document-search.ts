/** The document search of agents: queries the index with a vector and words. */
import type { Embeddings } from '../embeddings/port.js';
import type { SearchIndexer } from './indexer.js';
import type { FoundChunk, ChunkSearch } from './port.js';

export interface DocumentSearchDeps {
  readonly indexer: Pick<SearchIndexer, 'hasChunks' | 'searchable'>;
  readonly embeddings: Embeddings;
  /** Whether the index takes recorded vectors; otherwise it computes its own. */
  readonly recordsVectors: boolean;
  /** Name of a document's file; null: unknown. */
  readonly filenameOf: (documentId: string) => Promise<string | null>;
  /** Whether a document was found corrupt: its chunks are left out, even while the index still holds them. */
  readonly isCorrupt: (documentId: string) => boolean;
}

/** Waits for an index that is catching up or reopening. Throws the errors of embeddings, indexer and index. */
export function documentSearch({
  indexer: feed,
  embeddings,
  recordsVectors,
  filenameOf,
  isCorrupt,
}: DocumentSearchDeps): ChunkSearch {
  return {
    hasChunks: () => feed.hasChunks,
    async search(query, topK, { signal }) {
      const index = await feed.searchable(signal);
      if (index === null) return [];
      const vector = recordsVectors ? await vectorOf(query, embeddings, signal) : null;
      const found = await index.search({ text: query, vector, topK }, { signal });
      const valid = found.filter(({ document }) => !isCorrupt(document));
      return await Promise.all(
        valid.map(async (each): Promise<FoundChunk> => {
          const filename = await filenameOf(each.document);
          return { ...each, ...(filename !== null && { filename }) };
        }),
      );
    },
  };
}

async function vectorOf(query: string, { embed }: Embeddings, signal: AbortSignal): Promise<Float32Array | null> {
  const [vector = null] = await embed([query], { kind: 'query', signal });
  return vector;
}
