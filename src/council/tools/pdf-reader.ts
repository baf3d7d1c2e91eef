/** The tool that searches uploaded PDF documents for the chunks nearest to a query. */
import type { FoundChunk, ChunkSearch } from '../../search/document-search.js';
import { MARK_CHARS } from '../citations.js';
import type { Tool } from './tool.js';
import { countOf, queryOf, renderItems } from './tool.js';
import { present } from '../../system/element.js';

/** `pdf_reader(query, top_k)`; available while the search has chunks. */
export function pdfReader(search: ChunkSearch): Tool {
  return {
    grant: 'pdfReader',
    name: 'pdf_reader',
    description:
      'Finds passages in the PDF documents that were uploaded to this service. Each passage comes with the mark to ' +
      'cite it by, its document and its page.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the passages should be about, in a few words or a sentence.' },
        top_k: { type: 'integer', description: `How many passages, 1 to ${MAX_TOP_K}; ${DEFAULT_TOP_K} when absent.` },
      },
      required: ['query'],
    },
    isAvailable: () => search.hasChunks(),
    read(given) {
      const query = readDocumentQuery(given['query']);
      if (query === null) return { isUsable: false, fault: '"query" must be a text that is not empty' };
      const topK = countOf(given['top_k'], { min: 1, max: MAX_TOP_K, fallback: DEFAULT_TOP_K });
      return { isUsable: true, arguments: { query, top_k: topK } };
    },
    async run(given, { signal, documents, maxBytes }) {
      const topK = Number(given['top_k'] ?? DEFAULT_TOP_K);
      const wanted = { query: String(present(given['query'], 'query')), topK, documents };
      const passages = await findChunks(search, wanted, { signal });
      return { isFound: true, ...renderItems('passage', passages.map(itemOf), maxBytes) };
    },
  };
}

/** A chunk with its citation mark. */
export interface CitedChunk extends FoundChunk {
  /** The mark to cite it by. */
  readonly cite: string;
}

export interface DocumentQuery {
  /** As `readDocumentQuery` reads it. */
  readonly query: string;
  /** 1 to 20. */
  readonly topK: number;
  /** Ids of the documents to search. Absent: all. */
  readonly documents?: readonly string[] | undefined;
}

/** The chunks for a query, best first. Throws the errors of the search. */
export async function findChunks(
  search: Pick<ChunkSearch, 'search'>,
  { query, topK, documents }: DocumentQuery,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly CitedChunk[]> {
  const chunks = await search.search(query, topK, { signal, documents });
  return chunks.slice(0, topK).map((chunk) => ({
    ...chunk,
    score: Number.isFinite(chunk.score) ? chunk.score : 0,
    cite: `[${chunk.document.slice(0, MARK_CHARS)}:${chunk.page}]`,
  }));
}

/** A usable query, or null. */
export function readDocumentQuery(given: unknown): string | null {
  return queryOf(given, MAX_QUERY_CHARS);
}

function itemOf({ document, page, chunk, text, score, filename, cite }: CitedChunk) {
  return {
    attributes: {
      cite,
      ...(filename !== undefined && { document: filename.slice(0, 200) }),
      page: String(page),
    },
    text,
    hitOf: () => ({ document, page, chunk, score }),
  };
}

const DEFAULT_TOP_K = 5;
const MAX_TOP_K = 20;
const MAX_QUERY_CHARS = 1000;
