/** Requests of the server's read call. */
import type { Position } from '../port.js';
import { serverPositionOf } from './position.js';
import type { StreamNames } from './recorded-event.js';
import type { ReadRequest } from './wire.js';

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
export function readAllMessage(
  from: Position,
  { names, categories, max }: { names: StreamNames; categories: readonly string[] | null; max: number },
): ReadRequest {
  const filter = filterOf(names, categories);
  return { options: { ...PLAIN, all: { position: serverPositionOf(from) }, filter, count: max, direction: FORWARDS } };
}

/** The newest events of this log, newest first. */
export function readLastMessage(names: StreamNames, max: number): ReadRequest {
  const filter = filterOf(names, null);
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
export function subscribeMessage(
  after: Position,
  { names, categories }: { names: StreamNames; categories: readonly string[] | null },
): ReadRequest {
  const filter = filterOf(names, categories);
  return {
    options: { ...PLAIN, all: { position: serverPositionOf(after) }, filter, subscription: {}, direction: FORWARDS },
  };
}

const PLAIN = { uuids: { string: {} }, resolveLinks: false } as const;

/** Leaves out events that certainly belong to others; the rest is checked on arrival. */
function filterOf(
  names: StreamNames,
  categories: readonly string[] | null,
): NonNullable<ReadRequest['options']['filter']> {
  const prefix = names.serverPrefixes(categories);
  const stream = prefix === null ? { regex: '^[^$]' } : { prefix };
  return { stream, max: FILTER_WINDOW, checkpointMultiplier: CHECKPOINT_PAGES };
}
