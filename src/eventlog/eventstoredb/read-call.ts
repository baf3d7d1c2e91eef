/** One read call to the server and its answers, with a timeout for a server that sends none. */
import type { ClientReadableStream } from '@grpc/grpc-js';
import type { Connection } from './connection.js';
import type { ReadAnswer, ReadRequest } from './wire.js';
import { read } from './wire.js';
import type { System } from '../../system/system.js';

/** The reason for ending a call whose server sends nothing. */
export class ServerSilent extends Error {
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

/** The same in non-empty batches: one wait for many answers. `onAnswer` is called for each answer as it arrives. */
export function batchesTo(
  request: ReadRequest,
  connection: Connection,
  { signal, onAnswer }: { readonly signal: AbortSignal; readonly onAnswer: () => void },
): AsyncGenerator<readonly ReadAnswer[]> {
  return exchange(request, connection, { signal, answersIn: (call) => batchesOf(call, onAnswer) });
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

async function* batchesOf(call: Call, onAnswer: () => void): AsyncGenerator<readonly ReadAnswer[]> {
  let batch: ReadAnswer[] = [];
  let chars = 0;
  const failed = new Promise<never>((_, reject) => call.on('error', reject));
  failed.catch(() => undefined);
  let wake = (): void => undefined;
  call.on('end', () => wake());
  call.on('data', (answer: ReadAnswer) => {
    onAnswer();
    batch.push(answer);
    chars += answer.event?.event?.data.length ?? 0;
    if (batch.length < BATCH && chars < BATCH_CHARS) return;
    // Paused, so that nothing is pushed to the batch while it is being consumed.
    call.pause();
    wake();
  });
  while (!call.readableEnded) {
    await Promise.race([failed, new Promise<void>((resolve) => (wake = resolve))]);
    if (batch.length > 0) yield batch;
    batch = [];
    chars = 0;
    call.resume();
  }
}

/** The signal must not be aborted already: its event would not fire. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason as Error);
  });
  signal.addEventListener('abort', leave);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', leave);
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
