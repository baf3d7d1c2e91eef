/** Reads the chunks of a document from its record. */
import type { System } from '../system/system.js';
import type { EventLog } from '../eventlog/port.js';
import type { Chunk } from './chunk.js';
import { DocumentCorrupt } from './errors.js';
import type { DocumentEvent } from './events.js';
import { documentEventOf, documentStatusOf, readDocument } from './events.js';

/** A chunk with its number in the document, from 0. */
export interface NumberedChunk extends Chunk {
  readonly chunk: number;
}

export interface ChunkRange {
  /** Page of the chunks. Default: all pages. */
  readonly page?: number | undefined;
  readonly limit: number;
  /** Number of chunks to skip. */
  readonly offset: number;
}

export interface StoredChunksDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly system: Pick<System, 'sha256'>;
}

/**
 * The chunks in the order of the document, or null if it is unknown, deleted or not ingested yet. Does not read the vectors,
 * which are recorded after the chunks.
 *
 * @throws {DocumentCorrupt}
 */
export async function storedChunks(
  deps: StoredChunksDeps,
  documentId: string,
  { page, limit, offset }: ChunkRange,
): Promise<readonly NumberedChunk[] | null> {
  const chunks = await chunksIn(deps, documentId);
  if (chunks === null) return null;
  const found: NumberedChunk[] = [];
  let passed = 0;
  for await (const each of chunks) {
    if (page !== undefined && each.page !== page) continue;
    passed += 1;
    if (passed > offset && found.push(each) === limit) break;
  }
  return found;
}

/** The texts of those of some pages that have text, or null as above and if the record is corrupt. */
export async function storedPages(
  deps: StoredChunksDeps,
  documentId: string,
  pages: ReadonlySet<number>,
): Promise<ReadonlyMap<number, string> | null> {
  const texts = new Map<number, string>();
  try {
    const chunks = await chunksIn(deps, documentId);
    if (chunks === null) return null;
    for await (const { page, from, text } of chunks) {
      if (!pages.has(page)) continue;
      const before = texts.get(page) ?? '';
      // A chunk begins within the one before.
      texts.set(page, before + text.slice(before.length - from));
    }
  } catch (error) {
    if (error instanceof DocumentCorrupt) return null;
    throw error;
  }
  return texts;
}

async function chunksIn(
  { log, system }: StoredChunksDeps,
  documentId: string,
): Promise<AsyncIterable<NumberedChunk> | null> {
  const { decisive, since } = await documentStatusOf(log, documentId);
  const ingested = decisive === null ? null : documentEventOf(decisive);
  if (ingested?.type !== 'DocumentIngested') return null;
  const events = readDocument(log, documentId, { sha256: system.sha256, from: since, to: ingested.seq });
  return numbered(events, ingested.data.chunks);
}

/** The first chunks that the events add. Reads no further events. */
async function* numbered(events: AsyncIterable<DocumentEvent>, count: number): AsyncGenerator<NumberedChunk> {
  let chunk = 0;
  if (count === 0) return;
  for await (const event of events) {
    if (event.type !== 'ChunksAdded') continue;
    for (const each of event.data.chunks) {
      yield { ...each, chunk };
      chunk += 1;
    }
    if (chunk >= count) return;
  }
}
