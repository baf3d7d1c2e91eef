/** The search over uploaded documents, for agents. */
import type { Embeddings } from '../embeddings/port.js';
import { IndexLost } from './errors.js';
import type { ChunkQuery, ScoredChunk } from './index-client.js';
import type { SearchIndexer } from './indexer.js';

/** A piece of one page of a document. */
export interface FoundChunk {
  /** Id of the document: lower-case hex SHA-256 of its bytes. */
  readonly document: string;
  /** From 1. */
  readonly page: number;
  /** Number of the chunk in its document. */
  readonly chunk: number;
  readonly text: string;
  /** Higher is nearer; comparable within one answer only. */
  readonly score: number;
  /** Name of the uploaded file, unless it is unknown. */
  readonly filename?: string;
}

export interface ChunkSearchOptions {
  readonly signal: AbortSignal;
  /** Ids of the documents to search. Absent: all. */
  readonly documents?: readonly string[] | undefined;
}

export interface ChunkSearch {
  /** Whether any chunk can be found. Answers from memory, because every start of a node calls it. */
  hasChunks(): boolean;
  /** The nearest chunks of all documents, or of some, best first, at most `topK` (1..20). */
  search(query: string, topK: number, options: ChunkSearchOptions): Promise<readonly FoundChunk[]>;
}

export interface DocumentSearchDeps {
  readonly indexer: Pick<SearchIndexer, 'hasChunks' | 'whenSearchable'>;
  readonly embeddings: Embeddings;
  /** Whether the index takes recorded vectors; otherwise it computes its own. */
  readonly recordsVectors: boolean;
  /** Name of a document's file, or null if it is unknown. */
  readonly filenameOf: (documentId: string) => Promise<string | null>;
  /** Whether a document is corrupt. The search omits its chunks, even while the index still contains them. */
  readonly isCorrupt: (documentId: string) => boolean;
}

/** Waits until the index is open and up to date. Throws the errors of embeddings, indexer and index. */
export function documentSearch({
  indexer: feed,
  embeddings,
  recordsVectors,
  filenameOf,
  isCorrupt,
}: DocumentSearchDeps): ChunkSearch {
  return {
    hasChunks: () => feed.hasChunks,
    async search(query, topK, { signal, documents }) {
      if ((await feed.whenSearchable(signal)) === null) return [];
      const vector = recordsVectors ? await vectorOf(query, embeddings, signal) : null;
      const found = await foundBy(
        feed,
        { text: query, vector, topK, ...(documents !== undefined && { documents }) },
        signal,
      );
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

/** The chunks that the index finds. If the index is lost meanwhile, searches again once it is rebuilt. */
async function foundBy(
  indexer: DocumentSearchDeps['indexer'],
  query: ChunkQuery,
  signal: AbortSignal,
): Promise<readonly ScoredChunk[]> {
  for (;;) {
    const index = await indexer.whenSearchable(signal);
    try {
      return (await index?.search(query, { signal })) ?? [];
    } catch (error) {
      if (!(error instanceof IndexLost)) throw error;
    }
  }
}

async function vectorOf(query: string, { embed }: Embeddings, signal: AbortSignal): Promise<Float32Array | null> {
  const [vector = null] = await embed([query], { kind: 'query', signal });
  return vector;
}
