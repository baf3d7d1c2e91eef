/** Reads that survive a lost connection: they continue where they were if the server comes back in time. */
import type { System } from '../../system/system.js';
import { LogClosed, LogUnavailable } from '../errors.js';
import { wait } from '../../system/async/deadline.js';
import type { AllRange, Position, RecordedEvent, StreamRange } from '../port.js';
import type { Connection } from './connection.js';
import { faultOf } from './connection.js';
import { idleTimeout } from './read-call.js';
import { answersTo, ServerSilent } from './read-call.js';
import { NEWEST_OF_ALL, readAllMessage, readLastMessage, readStreamMessage } from './read-message.js';
import { eventIn, isOurs } from './read-message.js';
import type { StreamNames } from './read-message.js';
import type { ReadAnswer, ReadRequest } from './wire.js';

export interface Reader {
  readonly connection: Connection;
  readonly names: StreamNames;
  readonly system: Pick<System, 'after' | 'monotonicMs'>;
  /** How long the server may send nothing while an answer is expected, in milliseconds. */
  readonly deadlineMs: number;
  /** Knows at which position of the server this log begins. */
  readonly naming: { name(): Promise<LogName> };
}

/** The log's name and its position: all other events of the log come after it. */
export interface LogName {
  readonly identity: string;
  readonly position: Position;
}

/** Wait between attempts to reach the server, in milliseconds. */
export const RETRY_MS = 100;

const EVERYTHING = Number.MAX_SAFE_INTEGER;

/** A stream's events. */
export async function* streamEvents(
  reader: Reader,
  { serverStream, stream }: { readonly serverStream: string; readonly stream: string },
  range: StreamRange,
): AsyncGenerator<RecordedEvent> {
  const backwards = range.direction === 'backwards';
  let from = range.from ?? null;
  let left = range.max ?? EVERYTHING;
  if (left <= 0) return;
  const next = (): ReadRequest | null =>
    left > 0 && from !== -1 ? readStreamMessage({ serverStream, from, backwards, max: left }) : null;
  for await (const answer of answers(reader, next)) {
    const read = eventIn(answer, reader.names);
    if (read === null) continue;
    from = backwards ? read.revision - 1 : read.revision + 1;
    left -= 1;
    yield { ...read, stream };
  }
}

/** The events of all streams after a position, up to the head as it is now. */
export async function* allEvents(
  reader: Reader,
  after: Position | null,
  range: AllRange,
): AsyncGenerator<RecordedEvent> {
  const { names } = reader;
  const categories = range.categories ?? null;
  const until = await headPosition(reader);
  let seen = after ?? (await reader.naming.name()).position;
  let left = range.max ?? EVERYTHING;
  if (until === null) return;
  // One more, because the server includes the event at the position.
  const next = (): ReadRequest | null =>
    left > 0 && seen < until ? readAllMessage(seen, { names, categories, max: Math.min(left + 1, EVERYTHING) }) : null;
  for await (const answer of answers(reader, next)) {
    const read = eventIn(answer, names);
    if (read === null || read.position <= seen) continue;
    if (read.position > until) return;
    seen = read.position;
    if (!isOurs(read) || !names.isWanted(read.stream, categories)) continue;
    left -= 1;
    yield read;
    if (left === 0) return;
  }
}

/** Position of this log's newest event. The server skips what other logs have appended since. */
export async function headPosition(reader: Reader): Promise<Position | null> {
  const { position: begin } = await reader.naming.name();
  // One event suffices, unless it is the log's name or the tombstone of a deleted stream.
  for (const max of [1, EVERYTHING]) {
    for await (const answer of answers(reader, () => readLastMessage(reader.names, max))) {
      const read = eventIn(answer, reader.names);
      if (read === null) continue;
      if (read.position <= begin) return null;
      if (isOurs(read)) return read.position;
    }
  }
  return null;
}

/** Resolves once the server has answered. */
export async function roundTrip(reader: Reader): Promise<void> {
  for await (const _ of answers(reader, () => NEWEST_OF_ALL)) return;
}

/** The log's name, null when it has none yet. */
export async function nameIn(reader: Omit<Reader, 'naming'>): Promise<LogName | null> {
  const { names } = reader;
  const first = readStreamMessage({ serverStream: names.identityStream, from: null, backwards: false, max: 1 });
  for await (const answer of answers(reader, () => first)) {
    const event = eventIn(answer, names);
    const named: unknown = JSON.parse(event?.data ?? 'null');
    if (event === null || typeof named !== 'object' || named === null || !('identity' in named)) continue;
    return { identity: String(named.identity), position: event.position };
  }
  return null;
}

/**
 * Answers to a request, which is repeated after a failure: `next` then gives the rest of it, null when nothing is left.
 *
 * @throws {LogUnavailable} nothing came within the deadline @throws {LogClosed}
 */
async function* answers(reader: Omit<Reader, 'naming'>, next: () => ReadRequest | null): AsyncGenerator<ReadAnswer> {
  const { connection, system, deadlineMs } = reader;
  const waiting = idleTimeout(system, deadlineMs);
  let last: unknown = null;
  try {
    for (let request = next(); request !== null; request = next()) {
      try {
        for await (const answer of answersTo(request, connection, waiting.signal)) {
          waiting.pause();
          yield answer;
          waiting.resume();
        }
        return;
      } catch (error) {
        const fault = faultOf(error);
        if (fault === 'missing' || fault === 'deleted') return;
        if (error instanceof LogClosed) throw error;
        // Of a server that could not be reached, the earlier error says more than its silence.
        if (last === null || !(error instanceof ServerSilent)) last = error;
        if (fault === 'denied' || waiting.signal.aborted) throw new LogUnavailable({ cause: last });
      }
      await wait(system, RETRY_MS, waiting.signal);
    }
  } finally {
    waiting.end();
  }
}
