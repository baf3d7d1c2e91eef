/** Brings one document in the index up to date with an event. */
import { elementAt, present } from '../system/element.js';
import type { System } from '../system/system.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { DocumentCorrupt } from '../documents/errors.js';
import { documentEventOf, documentIdOf, readDocument } from '../documents/events.js';
import type { NewChunk, SearchIndex } from './index-client.js';
import type { Chunk } from '../documents/chunk.js';
import { VECTORS_PER_EVENT, vectorFromBase64 } from '../embeddings/port.js';

export type WritableIndex = Pick<SearchIndex, 'write'>;

export interface IndexDocumentDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly system: Pick<System, 'sha256'>;
  /** Model whose vectors the index reads from the log, or null if it computes them. */
  readonly model: string | null;
  /** Called, perhaps repeatedly, with each document that cannot be found because it lacks vectors of the model. */
  readonly onIncomplete: (documentId: string) => void;
  readonly onFault: (error: unknown) => void;
}

/**
 * Replaces the document's chunks, or removes them. A corrupt document is reported and removed; others are not affected.
 * Throws the errors of the log and the index.
 */
export async function indexDocument(
  index: WritableIndex,
  recorded: RecordedEvent,
  options: IndexDocumentDeps,
): Promise<void> {
  try {
    await replace(index, recorded, options);
  } catch (error) {
    if (!(error instanceof DocumentCorrupt)) throw error;
    options.onFault(error);
    await index.write({ added: [], removed: [documentOf(recorded)], checkpoint: recorded.position });
  }
}

async function replace(
  index: WritableIndex,
  recorded: RecordedEvent,
  { log, system, model, onIncomplete }: IndexDocumentDeps,
): Promise<void> {
  const document = documentOf(recorded);
  const event = documentEventOf(recorded);
  let removed: readonly string[] = [document];
  let [found, wanted] = [0, 0];
  if (event.type === 'DocumentIngested') {
    const span = { from: event.data.since, to: event.seq };
    wanted = event.data.chunks;
    for await (const added of recordedChunks(document, span, { log, sha256: system.sha256, model })) {
      await index.write({ added, removed, checkpoint: null });
      removed = [];
      found += added.length;
    }
  }
  const { position: checkpoint } = recorded;
  if (found >= wanted) return await index.write({ added: [], removed, checkpoint });
  await index.write({ added: [], removed: [document], incomplete: [document], checkpoint });
  onIncomplete(document);
}

function documentOf({ stream }: RecordedEvent): string {
  return present(documentIdOf(stream), `document of the stream "${stream}"`);
}

export interface ChunkReading {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly sha256: System['sha256'];
  /** Model of the vectors, or null if the index computes them. */
  readonly model: string | null;
}

/** Range of an ingested document's events in its stream: from DocumentReceived to DocumentIngested. */
export interface EventSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * The chunks of an ingested document in order, read from its stream, at most 64 at a time. Ends at the first chunk without a
 * vector of the model.
 *
 * @throws {DocumentCorrupt}
 */
async function* recordedChunks(
  document: string,
  { from, to }: EventSpan,
  { log, sha256, model }: ChunkReading,
): AsyncGenerator<readonly NewChunk[]> {
  const chunks: Chunk[] = [];
  let given = 0;
  for await (const event of readDocument(log, document, { sha256, from, to })) {
    if (event.type === 'ChunksAdded') for (const each of event.data.chunks) chunks.push(each);
    if (event.type !== 'ChunksEmbedded' || event.data.model !== model || event.data.from !== given) continue;
    const { vectors, dimensions } = event.data;
    const texts = chunks.slice(given, given + vectors.length);
    yield texts.map((chunk, at) => {
      const vector = vectorFromBase64(elementAt(vectors, at), dimensions);
      if (vector === null) {
        throw new DocumentCorrupt({ documentId: document, seq: event.seq, reason: `vector ${at} is invalid` });
      }
      return newChunk(chunk, { document, number: given + at, vector });
    });
    given += texts.length;
  }
  for (; model === null && given < chunks.length; given += VECTORS_PER_EVENT) {
    yield chunks
      .slice(given, given + VECTORS_PER_EVENT)
      .map((chunk, at) => newChunk(chunk, { document, number: given + at, vector: null }));
  }
}

function newChunk(
  { page, text }: Chunk,
  { document, number, vector }: { document: string; number: number; vector: Float32Array | null },
): NewChunk {
  return { document, chunk: number, page, text, vector };
}
