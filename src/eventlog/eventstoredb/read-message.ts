/** The server's read call in this log's words: requests, and answers as events with their names and positions. */
import { present } from '../../system/element.js';
import type { Position, RecordedEvent, SubscribeOptions } from '../port.js';
import { categoryOf, flatMetadata } from '../port.js';
import type { ReadAnswer, ReadRequest, Wide, WirePosition } from './wire.js';
import { narrow } from './wire.js';

const FORWARDS = 0;
const BACKWARDS = 1;

/**
 * Events scanned for one page of a filtered read, and pages between two checkpoints of a subscription: about every
 * thousand events, as in the embedded log.
 */
const FILTER_WINDOW = 500;
const CHECKPOINT_PAGES = 2;

export interface StreamReading {
  readonly serverStream: string;
  /** First revision, inclusive; null: the first, or backwards the last. */
  readonly from: number | null;
  readonly backwards: boolean;
  readonly max: number;
}

/** A range of one stream. */
export function readStreamMessage({ serverStream, from, backwards, max }: StreamReading): ReadRequest {
  const stream = { name: serverStream };
  const place = from !== null ? { revision: from } : backwards ? { end: {} } : { start: {} };
  const direction = backwards ? BACKWARDS : FORWARDS;
  return { options: { ...PLAIN, stream: { stream, ...place }, count: max, direction, noFilter: {} } };
}

/** The events of all streams of this log from a position on, inclusive as the server reads. */
export function readAllMessage(from: Position, { max, ...wanted }: Wanted & { readonly max: number }): ReadRequest {
  const filter = filterOf(wanted);
  return { options: { ...PLAIN, all: { position: serverPositionOf(from) }, filter, count: max, direction: FORWARDS } };
}

/** The newest events of this log, newest first. */
export function readLastMessage(names: StreamNames, max: number): ReadRequest {
  const filter = filterOf({ names });
  return { options: { ...PLAIN, all: { end: {} }, filter, count: max, direction: BACKWARDS } };
}

/** The server's newest event, of any log. */
export const NEWEST_OF_ALL: ReadRequest = {
  options: {
    uuids: { string: {} },
    resolveLinks: false,
    all: { end: {} },
    noFilter: {},
    count: 1,
    direction: BACKWARDS,
  },
};

/** A subscription to the events after a position, which the server excludes. */
export function subscribeMessage(after: Position, wanted: Wanted): ReadRequest {
  const filter = filterOf(wanted);
  return {
    options: { ...PLAIN, all: { position: serverPositionOf(after) }, filter, subscription: {}, direction: FORWARDS },
  };
}

const PLAIN = { uuids: { string: {} }, resolveLinks: false } as const;

/** Which events are wanted, and whose names their streams have. */
export interface Wanted extends Omit<SubscribeOptions, 'signal'> {
  readonly names: StreamNames;
}

/**
 * Leaves out events that are certainly not wanted; the rest is checked on arrival. The server filters by streams or by
 * types: by types only where all streams are of this log.
 */
function filterOf({ names, categories, types }: Wanted): NonNullable<ReadRequest['options']['filter']> {
  const window = { max: FILTER_WINDOW, checkpointMultiplier: CHECKPOINT_PAGES };
  if (types !== undefined && names.serverPrefixes(null) === null) {
    return { eventType: { regex: `^(?:${types.join('|')})$` }, ...window };
  }
  const prefix = names.serverPrefixes(categories ?? null);
  return { stream: prefix === null ? { regex: '^[^$]' } : { prefix }, ...window };
}

// Maps the names of this log's streams to names on the server and back.

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

// Positions of EventStoreDB: commit and prepare position inside, fixed-width text outside, comparable with `<`.

/** Hex digits of half a 64-bit number. */
const DIGITS = 8;
const TEXT = /^[0-9a-f]{32}$/;

/** The position of an event at a place in the server's log. */
export function positionOf({ commit, prepare }: WirePosition): Position {
  const text = hex(commit);
  // The two differ only for events written in a transaction, which current clients do not use.
  const isOne = commit.low === prepare.low && commit.high === prepare.high;
  return (text + (isOne ? text : hex(prepare))) as Position;
}

/** The place at a position. @throws {TypeError} for a position of another kind of log */
export function serverPositionOf(position: Position): WirePosition {
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return { commit: wideAt(position, 0), prepare: wideAt(position, 2 * DIGITS) };
}

/** 64 bits as fixed-width hex. */
export function hex({ low, high }: Wide): string {
  return half(high) + half(low);
}

const ZERO = '0'.repeat(DIGITS);

function half(bits: number): string {
  if (bits === 0) return ZERO;
  return (bits >>> 0).toString(16).padStart(DIGITS, '0');
}

function wideAt(position: string, from: number): Wide {
  const at = (digit: number): number => Number.parseInt(position.slice(digit, digit + DIGITS), 16);
  return { high: at(from), low: at(from + DIGITS) };
}
