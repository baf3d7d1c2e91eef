/** The search that agents read documents with: the index, asked with a query's vector and words. */
import type { Embeddings } from './embeddings.js';
import type { Passage, PassageSearch } from './passages.js';
import type { PassagesIndex } from './passages-index.js';

export interface SearchParts {
  /** The index while it is open. */
  readonly index: () => PassagesIndex | null;
  readonly embeddings: Embeddings;
  /** Whether the index takes vectors as they come; else it computes its own. */
  readonly recordsVectors: boolean;
  /** Name of a document's file; null: unknown. */
  readonly filenameOf: (documentId: string) => Promise<string | null>;
}

/** Throws what the embeddings and the index throw. */
export function indexedPassages({ index, embeddings, recordsVectors, filenameOf }: SearchParts): PassageSearch {
  return {
    hasPassages: () => (index()?.count() ?? 0) > 0,
    async search(query, topK, { signal }) {
      const open = index();
      if (open === null) return [];
      const vector = recordsVectors ? await vectorOf(query, embeddings, signal) : null;
      const found = await open.search({ text: query, vector, topK }, { signal });
      return await Promise.all(
        found.map(async (each): Promise<Passage> => {
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
