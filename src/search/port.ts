/** The search over uploaded documents, as its readers see it. */

/** A piece of one page of a document. */
export interface FoundChunk {
  /** Id of the document: lower-case hex SHA-256 of its bytes. */
  readonly document: string;
  /** From 1. */
  readonly page: number;
  /** Place of the piece in its document. */
  readonly chunk: number;
  readonly text: string;
  /** Higher is nearer; comparable within one answer only. */
  readonly score: number;
  /** Name of the uploaded file, as it was sent; absent: unknown. */
  readonly filename?: string;
}

export interface ChunkSearch {
  /** Whether there is any chunk to find. Called at every start of a node, so it answers from memory. */
  hasChunks(): boolean;
  /** The nearest chunks, best first, at most `topK` (1..20). */
  search(query: string, topK: number, options: { readonly signal: AbortSignal }): Promise<readonly FoundChunk[]>;
}
