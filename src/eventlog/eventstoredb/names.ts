/** Converts names, positions and events between the log and the client. */
import type { Position, RecordedEvent } from '../port.js';
import { categoryOf, flatMetadata } from '../port.js';

/** Holds the identity of the log; readers never see its events. */
const IDENTITY_STREAM = 'log-identity';

/** Matches no stream. The server compares prefixes by a culture, which ignores control characters: it finds U+0000 at the start of every name. */
const NO_STREAM = '$no-stream-';

export interface StreamNames {
  /** The stream's name on the server. */
  toServer(stream: string): string;
  /** The stream's name in this log, or null if the stream belongs to another log, to the server, or is the identity's. */
  fromServer(serverStream: string): string | null;
  readonly identityStream: string;
  /** Prefixes that match all wanted streams, and perhaps others, or null if every stream without a `$` is wanted. */
  serverPrefixes(categories: readonly string[] | null): readonly string[] | null;
  /** Whether a stream is of one of the categories; null stands for all. */
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

/** An event of the server; its stream is null if it is not part of this log. */
export type ReadEvent = Omit<RecordedEvent, 'stream'> & { readonly stream: string | null };

export function isOurs(read: ReadEvent): read is RecordedEvent {
  return read.stream !== null;
}

/** An event as the server records it. */
export interface ServerEvent {
  readonly serverStream: string;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  /** JSON text. */
  readonly metadata: string;
  /** Of the tombstone of a deleted stream: larger than any safe integer. */
  readonly revision: number;
  readonly position: Position;
  /** By the server's clock, in milliseconds since 1970. */
  readonly recordedAtMs: number;
}

/**
 * The event for readers. Lists each field: with rest properties (`...rest`) V8 takes 5 µs more, beside 2 µs for all else.
 */
export function eventIn(event: ServerEvent, names: StreamNames): ReadEvent {
  const { id, type, data, revision, position, recordedAtMs } = event;
  // The tombstone of a deleted stream has the greatest revision there is.
  const isForReaders = !type.startsWith('$') && Number.isSafeInteger(revision);
  const stream = isForReaders ? names.fromServer(event.serverStream) : null;
  return { stream, id, type, data, metadata: flatMetadata(event.metadata), revision, position, recordedAtMs };
}

// Positions of EventStoreDB: commit and prepare position inside, fixed-width text outside, comparable with `<`.

/** Hex digits of a 64-bit number. */
const DIGITS = 16;
const TEXT = /^[0-9a-f]{32}$/;

/** Offsets in the server's log in bytes, exact up to 2^53 (8 PiB). */
interface ServerPosition {
  readonly commit: number;
  readonly prepare: number;
}

/** The position of an event in the server's log. */
export function positionOf({ commit, prepare }: ServerPosition): Position {
  const text = hex(commit);
  // The two differ only for events written in a transaction, which current clients do not use.
  return (text + (commit === prepare ? text : hex(prepare))) as Position;
}

/** Before the server's first event. */
export const SERVER_BEGIN: Position = positionOf({ commit: 0, prepare: 0 });

/** @throws {TypeError} for a position of another kind of log */
export function serverPositionOf(position: Position): ServerPosition {
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return { commit: parseInt(position.slice(0, DIGITS), 16), prepare: parseInt(position.slice(DIGITS), 16) };
}

function hex(number: number): string {
  return number.toString(16).padStart(DIGITS, '0');
}
