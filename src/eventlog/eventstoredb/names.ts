/** Converts names, positions and events between the log and the client. */
import type { Position as ServerPosition } from '@eventstore/db-client';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { Position, RecordedEvent } from '../port.js';
import { categoryOf, flatMetadata } from '../port.js';

/** Holds the identity of the log; readers never see its events. */
const IDENTITY_STREAM = 'log-identity';

/** Matches no stream: names hold no control characters. */
const NO_STREAM = '\u0000';

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

/** The server counts time in units of 100 ns. */
const TICKS_PER_MS = 10_000;

/** An event of the server; its stream is null if it is not part of this log. */
export type ReadEvent = Omit<RecordedEvent, 'stream'> & { readonly stream: string | null };

export function isOurs(read: ReadEvent): read is RecordedEvent {
  return read.stream !== null;
}

/** The event of an answer. */
export function eventIn(record: ReadResp.ReadEvent.RecordedEvent, names: StreamNames): ReadEvent {
  const properties = record.getMetadataMap();
  const type = properties.get('type') ?? '';
  const revision = Number(record.getStreamRevision());
  // The tombstone of a deleted stream has the greatest revision there is.
  const isForReaders = !type.startsWith('$') && Number.isSafeInteger(revision);
  const [commit, prepare] = [BigInt(record.getCommitPosition()), BigInt(record.getPreparePosition())];
  return {
    stream: isForReaders ? names.fromServer(textOf(record.getStreamIdentifier()?.getStreamName_asU8())) : null,
    id: record.getId()?.getString() ?? '',
    type,
    data: textOf(record.getData_asU8()),
    metadata: flatMetadata(textOf(record.getCustomMetadata_asU8())),
    revision,
    position: positionOf({ commit, prepare }),
    recordedAtMs: Number(properties.get('created')) / TICKS_PER_MS,
  };
}

function textOf(bytes: Uint8Array = new Uint8Array()): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

// Positions of EventStoreDB: commit and prepare position inside, fixed-width text outside, comparable with `<`.

/** Hex digits of a 64-bit number. */
const DIGITS = 16;
const TEXT = /^[0-9a-f]{32}$/;

/** The position of an event in the server's log. */
export function positionOf({ commit, prepare }: ServerPosition): Position {
  const text = hex(commit);
  // The two differ only for events written in a transaction, which current clients do not use.
  return (text + (commit === prepare ? text : hex(prepare))) as Position;
}

/** Before the server's first event. */
export const SERVER_BEGIN: Position = positionOf({ commit: 0n, prepare: 0n });

/** @throws {TypeError} for a position of another kind of log */
export function serverPositionOf(position: Position): ServerPosition {
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return { commit: BigInt(`0x${position.slice(0, DIGITS)}`), prepare: BigInt(`0x${position.slice(DIGITS)}`) };
}

function hex(number: bigint): string {
  return number.toString(16).padStart(DIGITS, '0');
}
