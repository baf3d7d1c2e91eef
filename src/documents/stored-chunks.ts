/** The chunks of a document, read from its record. */
import type { System } from '../system/system.js';
import type { EventLog } from '../eventlog/port.js';
import type { Chunk } from './chunk.js';
import type { DocumentEvent } from './events.js';
import { documentEventOf, documentStatusOf, readDocument } from './events.js';

/** A chunk with its place in the document, from 0. */
export interface NumberedChunk extends Chunk {
  readonly chunk: number;
}

export interface ChunkRange {
  /** Chunks of this page alone; absent: of all. */
  readonly page?: number | undefined;
  readonly limit: number;
  /** Of those, how many are passed over. */
  readonly offset: number;
}

export interface StoredChunksDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly system: Pick<System, 'sha256'>;
}

/**
 * Chunks in the order of the document; null when it is unknown, deleted or not ingested yet. Vectors, which are recorded
 * behind the chunks, are not read.
 *
 * @throws {DocumentCorrupt}
 */
export async function storedChunks(
  { log, system }: StoredChunksDeps,
  documentId: string,
  { page, limit, offset }: ChunkRange,
): Promise<readonly NumberedChunk[] | null> {
  const { decisive, since } = await documentStatusOf(log, documentId);
  const ingested = decisive === null ? null : documentEventOf(decisive);
  if (ingested?.type !== 'DocumentIngested') return null;
  const events = readDocument(log, documentId, { sha256: system.sha256, from: since, to: ingested.seq });
  const found: NumberedChunk[] = [];
  let passed = 0;
  for await (const each of numbered(events, ingested.data.chunks)) {
    if (page !== undefined && each.page !== page) continue;
    passed += 1;
    if (passed > offset && found.push(each) === limit) break;
  }
  return found;
}

/** The first chunks that events add; what follows is not read. */
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
