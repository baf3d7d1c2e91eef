/** The passages of an ingested document, read from its stream. */
import type { Ambient } from '../ambient.js';
import type { EventLog } from '../log/port.js';
import type { Chunk } from './chunk.js';
import { DocumentDamaged } from './document-errors.js';
import { readDocument } from './document-events.js';
import type { NewPassage } from './passages-index.js';
import { VECTORS_PER_EVENT, vectorFromBase64 } from './vector-base64.js';

export interface PassageReading {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly sha256: Ambient['sha256'];
  /** Whose vectors are wanted; null: they are computed where they are used. */
  readonly model: string | null;
}

/** Place of an ingested document's events in its stream: from its DocumentReceived to its DocumentIngested. */
export interface EventSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * Its passages in their order, at most 64 at a time, from the first one on and as far as there are vectors of the model.
 *
 * @throws {DocumentDamaged}
 */
export async function* recordedPassages(
  document: string,
  { from, to }: EventSpan,
  { log, sha256, model }: PassageReading,
): AsyncGenerator<readonly NewPassage[]> {
  const chunks: Chunk[] = [];
  let given = 0;
  for await (const event of readDocument(log, document, { sha256, from, to })) {
    if (event.type === 'ChunksAdded') for (const each of event.data.chunks) chunks.push(each);
    if (event.type !== 'ChunksEmbedded' || event.data.model !== model || event.data.from !== given) continue;
    const { vectors, dimensions } = event.data;
    const texts = chunks.slice(given, given + vectors.length);
    yield texts.map((chunk, at) => {
      const vector = vectorFromBase64(vectors[at] ?? '', dimensions);
      if (vector === null) {
        throw new DocumentDamaged({ documentId: document, seq: event.seq, reason: `vector ${at} is none` });
      }
      return passageOf(chunk, { document, number: given + at, vector });
    });
    given += texts.length;
  }
  for (; model === null && given < chunks.length; given += VECTORS_PER_EVENT) {
    yield chunks
      .slice(given, given + VECTORS_PER_EVENT)
      .map((chunk, at) => passageOf(chunk, { document, number: given + at, vector: null }));
  }
}

function passageOf(
  { page, text }: Chunk,
  { document, number, vector }: { document: string; number: number; vector: Float32Array | null },
): NewPassage {
  return { document, chunk: number, page, text, vector };
}
