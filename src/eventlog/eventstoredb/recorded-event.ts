/** Maps events from the wire to the port's shape. */
import { flatMetadata } from '../port.js';
import type { RecordedEvent } from '../port.js';
import { positionOf } from './position.js';
import type { StreamNames } from './stream-names.js';
import type { ReadAnswer } from './wire.js';
import { narrow } from './wire.js';

/** An event as it was read; its stream is null when it is not part of this log. */
export type ReadEvent = Omit<RecordedEvent, 'stream'> & { readonly stream: string | null };

export function isOurs(read: ReadEvent): read is RecordedEvent {
  return read.stream !== null;
}

/** The event in an answer, null when it holds something else. */
export function eventIn(answer: ReadAnswer, names: StreamNames): ReadEvent | null {
  const record = answer.event?.event ?? null;
  if (record === null) return null;
  const type = record.metadata['type'] ?? '';
  const revision = narrow(record.revision);
  // The tombstone of a deleted stream has the greatest revision there is.
  const isForReaders = !type.startsWith('$') && Number.isSafeInteger(revision);
  return {
    stream: isForReaders ? names.fromServer(record.stream?.name ?? '') : null,
    id: record.id?.string ?? '',
    type,
    data: record.data,
    metadata: flatMetadata(record.customMetadata),
    revision,
    position: positionOf(record),
  };
}
