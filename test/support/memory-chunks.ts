/** A search over a few chunks in memory. A chunk with more words of the query ranks higher. */
import { createHash } from 'node:crypto';
import type { FoundChunk, ChunkSearch } from '../../src/search/document-search.js';

/** Pages of one document, in order; each is one chunk. */
export interface MemoryDocument {
  readonly filename: string;
  readonly pages: readonly string[];
}

/** Id of a document, computed from its content. */
export function documentId({ filename, pages }: MemoryDocument): string {
  return createHash('sha256')
    .update([filename, ...pages].join('\n'))
    .digest('hex');
}

/** The citation mark of one of its pages. */
export function markOf(document: MemoryDocument, page: number): string {
  return `[${documentId(document).slice(0, 8)}:${page}]`;
}

export function memoryChunks(documents: readonly MemoryDocument[]): ChunkSearch {
  const passages = documents.flatMap((document) =>
    document.pages.map((text, index) => ({
      document: documentId(document),
      filename: document.filename,
      page: index + 1,
      chunk: index,
      text,
    })),
  );
  return {
    hasChunks: () => passages.length > 0,
    search: async (query, topK) => {
      const wanted = new Set(wordsOf(query));
      const scored = passages.map((each): FoundChunk => {
        const words = wordsOf(each.text);
        return { ...each, score: words.filter((word) => wanted.has(word)).length / (words.length || 1) };
      });
      return scored
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score)
        .slice(0, topK);
    },
  };
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/\p{L}+/gu) ?? [];
}
