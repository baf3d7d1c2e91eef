/** Maps the names of this log's streams to names on the server and back. */
import { present } from '../../system/element.js';
import type { RecordedEvent } from '../port.js';
import { categoryOf, flatMetadata } from '../port.js';
import { positionOf } from './position.js';
import type { ReadAnswer } from './wire.js';
import { narrow } from './wire.js';

/** Holds the identity of the log; readers never see its events. */
const IDENTITY_STREAM = 'log-identity';

/** Matches no stream: names hold no control characters. */
const NO_STREAM = '\u0000';

export interface StreamNames {
  /** The stream's name on the server. */
  toServer(stream: string): string;
  /** The stream's name in this log; null for streams of others, of the server itself, and the identity's. */
  fromServer(serverStream: string): string | null;
  readonly identityStream: string;
  /** Prefixes of all wanted streams, and perhaps of some others; null: anything but a `$`. */
  serverPrefixes(categories: readonly string[] | null): readonly string[] | null;
  /** Whether a stream is of one of the categories; null: of any. */
  isWanted(stream: string, categories: readonly string[] | null): boolean;
}

/** @param prefix of every name on the server; holds no dash */
export function streamNames(prefix: string): StreamNames {
  return {
    toServer: (stream) => prefix + stream,
    fromServer(serverStream) {
      if (serverStream.startsWith('$') || !serverStream.startsWith(prefix)) return null;
      const stream = serverStream.slice(prefix.length);
      return stream === IDENTITY_STREAM || stream === '' ? null : stream;
    },
    identityStream: prefix + IDENTITY_STREAM,
    serverPrefixes(categories) {
      if (categories === null) return prefix === '' ? null : [prefix];
      return categories.length === 0 ? [NO_STREAM] : categories.map((category) => prefix + category);
    },
    isWanted: (stream, categories) => categories === null || categories.includes(categoryOf(stream)),
  };
}

// Maps events from the wire to the port's shape.

/** An event as it was read; its stream is null when it is not part of this log. */
export type ReadEvent = Omit<RecordedEvent, 'stream'> & { readonly stream: string | null };

export function isOurs(read: ReadEvent): read is RecordedEvent {
  return read.stream !== null;
}

/** The event in an answer, null when it holds something else. */
export function eventIn(answer: ReadAnswer, names: StreamNames): ReadEvent | null {
  const record = answer.event?.event ?? null;
  if (record === null) return null;
  const type = present(record.metadata['type'], 'type of an event');
  const revision = narrow(record.revision);
  // The tombstone of a deleted stream has the greatest revision there is.
  const isForReaders = !type.startsWith('$') && Number.isSafeInteger(revision);
  return {
    stream: isForReaders ? names.fromServer(present(record.stream, 'stream of an event').name) : null,
    id: present(record.id?.string, 'id of an event'),
    type,
    data: record.data,
    metadata: flatMetadata(record.customMetadata),
    revision,
    position: positionOf(record),
  };
}
