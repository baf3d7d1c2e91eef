/** Reads that survive a lost connection: they continue where they were if the server comes back in time. */
import type { System } from '../../system/system.js';
import { LogClosed, LogUnavailable } from '../errors.js';
import { orAborted, wait } from '../../system/async/deadline.js';
import type { AllRange, Position, RecordedEvent, StreamRange } from '../port.js';
import type { Connection } from './connection.js';
import { faultOf } from './connection.js';
import type { StreamNames } from './read-message.js';
import { NEWEST_OF_ALL, eventIn, isOurs, readAllMessage, readLastMessage, readStreamMessage } from './read-message.js';
import type { ReadAnswer, ReadRequest } from './wire.js';
import { read } from './wire.js';
import type { ClientReadableStream } from '@grpc/grpc-js';

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
  const { categories } = range;
  const until = await headPosition(reader);
  let seen = after ?? (await reader.naming.name()).position;
  let left = range.max ?? EVERYTHING;
  if (until === null) return;
  // One more, because the server includes the event at the position.
  const next = (): ReadRequest | null =>
    left > 0 && seen < until
      ? readAllMessage(seen, { names, ...(categories && { categories }), max: Math.min(left + 1, EVERYTHING) })
      : null;
  for await (const answer of answers(reader, next)) {
    const read = eventIn(answer, names);
    if (read === null || read.position <= seen) continue;
    if (read.position > until) return;
    seen = read.position;
    if (!isOurs(read) || !names.isWanted(read.stream, categories ?? null)) continue;
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

// One read call to the server and its answers, with a timeout for a server that sends none.

/** The reason for ending a call whose server sends nothing. */
class ServerSilent extends Error {
  constructor(deadlineMs: number) {
    super(`The server said nothing for ${deadlineMs} ms`);
  }
}

/** Answers, and UTF-16 units of data, at which a batch is full. */
const BATCH = 250;
const BATCH_CHARS = 1024 * 1024;

/**
 * Makes the call and yields its answers as they come; those not consumed yet wait at the server, apart from socket
 * buffers. Leaving the loop ends the call on both sides. Throws the call's error, which has been reported to the
 * connection, or the signal's reason.
 */
export function answersTo(
  request: ReadRequest,
  connection: Connection,
  signal: AbortSignal,
): AsyncGenerator<ReadAnswer> {
  return exchange(request, connection, { signal, answersIn: (call): AsyncIterable<ReadAnswer> => call });
}

interface BatchOptions {
  /** Called for each answer as it arrives. */
  readonly onAnswer: () => void;
  /** Whether a batch is what has come together; else it waits to be full, or for the end. */
  readonly asTheyCome?: boolean;
}

/** A read's answers in non-empty batches: one wait for many answers. */
export function batchesTo(
  request: ReadRequest,
  connection: Connection,
  { signal, ...options }: BatchOptions & { readonly signal: AbortSignal },
): AsyncGenerator<readonly ReadAnswer[]> {
  return exchange(request, connection, { signal, answersIn: (call) => batchesOf(call, options) });
}

type Call = ClientReadableStream<ReadAnswer>;

async function* exchange<T>(
  request: ReadRequest,
  connection: Connection,
  { signal, answersIn: heard }: { readonly signal: AbortSignal; readonly answersIn: (call: Call) => AsyncIterable<T> },
): AsyncGenerator<T> {
  signal.throwIfAborted();
  const route = await orAborted(connection.route(), signal);
  const call = connection.begin(route, (streams, metadata, options) => read(streams, request, { metadata, options }));
  const leave = (): void => call.cancel();
  signal.addEventListener('abort', leave);
  try {
    yield* heard(call);
  } catch (error) {
    if (signal.reason instanceof ServerSilent) connection.replace(route);
    signal.throwIfAborted();
    connection.failed(route, error);
    throw error;
  } finally {
    signal.removeEventListener('abort', leave);
    call.cancel();
  }
}

async function* batchesOf(
  call: Call,
  { onAnswer, asTheyCome = false }: BatchOptions,
): AsyncGenerator<readonly ReadAnswer[]> {
  let batch: ReadAnswer[] = [];
  let chars = 0;
  const failed = new AbortController();
  let wake = (): void => undefined;
  call.on('error', (error) => {
    failed.abort(error);
    wake();
  });
  call.on('end', () => wake());
  call.on('data', (answer: ReadAnswer) => {
    onAnswer();
    batch.push(answer);
    chars += answer.event?.event?.data.length ?? 0;
    if (batch.length < BATCH && chars < BATCH_CHARS) {
      // What came with it is taken with it.
      if (asTheyCome && batch.length === 1) setImmediate(() => wake());
      return;
    }
    // Paused, so that nothing is pushed to the batch while it is being consumed.
    call.pause();
    wake();
  });
  while (!call.readableEnded) {
    await new Promise<void>((resolve) => (wake = resolve));
    failed.signal.throwIfAborted();
    call.pause();
    if (batch.length > 0) yield batch;
    failed.signal.throwIfAborted();
    batch = [];
    chars = 0;
    call.resume();
  }
}

export interface IdleTimeout {
  /** Aborts with ServerSilent when the timeout expires, or with the outer signal. */
  readonly signal: AbortSignal;
  /** Stops the clock while an answer is processed. */
  pause(): void;
  /** Restarts the clock: the server is waited for again. */
  resume(): void;
  end(): void;
}

/**
 * Expires after the deadline, counted from now and from each answer; once answers come it may take up to twice as long,
 * because a timer per answer would cost more than reading it.
 *
 * @param outer aborts it too; unlike with AbortSignal.any, no listener stays on it after `end`
 */
export function idleTimeout(system: Pick<System, 'after'>, deadlineMs: number, outer?: AbortSignal): IdleTimeout {
  const over = new AbortController();
  const leave = (): void => over.abort(outer?.reason);
  if (outer?.aborted === true) leave();
  outer?.addEventListener('abort', leave);
  let isPaused = false;
  let isFresh = false;
  let cancel = (): void => undefined;
  const set = (): void => {
    cancel = system.after(deadlineMs, () => {
      if (!isPaused && !isFresh) return over.abort(new ServerSilent(deadlineMs));
      isFresh = false;
      set();
    });
  };
  set();
  return {
    signal: over.signal,
    pause() {
      isPaused = true;
    },
    resume() {
      isPaused = false;
      isFresh = true;
    },
    end() {
      cancel();
      outer?.removeEventListener('abort', leave);
    },
  };
}
