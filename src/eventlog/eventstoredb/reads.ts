/** Reads that survive a lost connection: they go on where they were, as long as the server comes back in time. */
import type { System } from '../../system/system.js';
import { LogClosed, LogUnavailable } from '../../errors.js';
import { wait } from '../../system/async/wait.js';
import type { AllRange, Position, RecordedEvent, StreamRange } from '../port.js';
import type { Connection } from './connection.js';
import { faultOf } from './server-errors.js';
import { idleTimeout } from './idle-timeout.js';
import { answersTo, ServerSilent } from './read-call.js';
import { NEWEST_OF_ALL, readAllMessage, readLastMessage, readStreamMessage } from './read-message.js';
import { eventIn, isOurs } from './recorded-event.js';
import type { StreamNames } from './stream-names.js';
import type { ReadAnswer, ReadRequest } from './wire.js';

export interface Reader {
  readonly connection: Connection;
  readonly names: StreamNames;
  readonly system: Pick<System, 'after' | 'monotonicMs'>;
  /** How long the server may say nothing while it is waited for, in milliseconds. */
  readonly deadlineMs: number;
  /** Tells where this log begins among all that the server holds. */
  readonly naming: { name(): Promise<LogName> };
}

/** What a log is called, and where it was given that name: everything in the log comes after. */
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
  // One more, because the server begins with the event at the position.
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

/** Position of this log's newest event. What others have appended since is looked through by the server. */
export async function headPosition(reader: Reader): Promise<Position | null> {
  const { position: begin } = await reader.naming.name();
  // The newest is this log's own but for its name and the marks of deleted streams.
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

/** The name given to this log, null when it has none yet. */
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
 * Answers to a request, which is made anew after a failure: `next` then tells what is left of it, null for nothing.
 *
 * @throws {LogUnavailable} nothing came for as long as the deadline @throws {LogClosed}
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
        // The silence of a server that could not even be reached has a reason worth telling.
        if (last === null || !(error instanceof ServerSilent)) last = error;
        if (fault === 'denied' || waiting.signal.aborted) throw new LogUnavailable({ cause: last });
      }
      await wait(system, RETRY_MS, waiting.signal);
    }
  } finally {
    waiting.end();
  }
}
