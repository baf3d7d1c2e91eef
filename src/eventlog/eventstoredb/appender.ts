/** Sends the appends through a few calls. A limited number is in flight; the others wait here. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { elementAt } from '../../system/element.js';
import type { System } from '../../system/system.js';
import { wait } from '../../system/async/deadline.js';
import {
  AppendInvalid,
  AppendOutcomeUnknown,
  AppendTooLarge,
  LogDenied,
  LogUnavailable,
  RevisionConflict,
  StreamRemoved,
} from '../errors.js';
import type { Appended } from '../port.js';
import { AppendCalls } from './append-calls.js';
import type { Clients } from './clients.js';
import { isDenied } from './clients.js';
import type { CheckedAppend, AppendAnswer } from './streams-service.js';
import type { Status } from '@eventstore/db-client/generated/status_pb.js';

/** Most appends without an answer, and most UTF-16 units of their data; more are refused, certainly not sent. */
export const MAX_WAITING = 20_000;
const MAX_WAITING_CHARS = 64 * 1024 * 1024;

/**
 * Most appends that the server holds at a time. Measured with 500 concurrent runs: with 90 the service completes 0.6 times
 * the runs a second, with 16 half of them, and neither makes lists faster.
 */
const MAX_IN_FLIGHT = 500;

/** Wait between two reads that test whether the server answers again, in milliseconds. */
const RETRY_MS = 100;

export interface AppenderOptions {
  readonly clients: Clients;
  readonly system: Pick<System, 'after'>;
  /** Longest wait until an append is sent, and from then until its answer, in milliseconds. */
  readonly deadlineMs: number;
  /** Resolves once the server answers a read; rejects if it does not in time. */
  readonly roundTrip: () => Promise<void>;
}

interface Waiting {
  readonly append: CheckedAppend;
  readonly serverStream: string;
  readonly resolve: (answer: Promise<Appended>) => void;
  /** Stops the timer that refuses an append which is not sent in time. */
  readonly cancelTimer: () => void;
}

/** Sends each append once; if no answer comes, the caller finds out the outcome by appending again. */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #stopping = new AbortController();
  /** All appends without an answer. */
  readonly #unanswered = new Set<Promise<Appended>>();
  /** The same by stream, revision and first id, to find a repeated append. */
  readonly #inFlight = new Map<string, { readonly append: CheckedAppend; readonly answer: Promise<Appended> }>();
  readonly #unsent = new Set<Waiting>();
  #chars = 0;
  #sent = 0;
  /** The calls that take the next appends, or null if none are open. */
  #calls: AppendCalls | null = null;
  /** Why no append is sent until the server answers a read, or null if it answers. */
  #fault: Error | null = null;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /**
   * Resolves once durable; rejects with the errors of `EventLog.append`. An equal append shares the answer of the one in
   * flight, because the server does not answer the second.
   */
  append(append: CheckedAppend, serverStream: string): Promise<Appended> {
    const key = `${String(append.expected)} ${elementAt(append.events, 0).id} ${append.stream}`;
    const first = this.#inFlight.get(key);
    if (first !== undefined && hasSameIds(first.append, append)) return first.answer;
    const chars = append.events.reduce((sum, { data }) => sum + data.length, 0);
    if (this.#unanswered.size >= MAX_WAITING || this.#chars + chars > MAX_WAITING_CHARS)
      return Promise.reject(new LogUnavailable());
    const answer = this.#queued(append, serverStream);
    if (first === undefined) this.#inFlight.set(key, { append, answer });
    this.#unanswered.add(answer);
    this.#chars += chars;
    const settled = (): void => {
      if (first === undefined) this.#inFlight.delete(key);
      this.#unanswered.delete(answer);
      this.#chars -= chars;
    };
    answer.then(settled, settled);
    return answer;
  }

  /** Waits for every answer, at most for the deadlines. No append may follow. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#unanswered);
    this.#stopping.abort();
    this.#calls?.retire();
  }

  #queued(append: CheckedAppend, serverStream: string): Promise<Appended> {
    const { system, deadlineMs } = this.#options;
    if (this.#hasRoom && this.#unsent.size === 0) return this.#inTurn(append, serverStream);
    return new Promise((resolve) => {
      const onLate = (): void => {
        this.#unsent.delete(waiting);
        resolve(Promise.reject(new LogUnavailable(this.#fault === null ? {} : { cause: this.#fault })));
      };
      const waiting: Waiting = { append, serverStream, resolve, cancelTimer: system.after(deadlineMs, onLate) };
      this.#unsent.add(waiting);
    });
  }

  #sendMore(): void {
    for (const waiting of this.#unsent) {
      if (!this.#hasRoom) return;
      this.#unsent.delete(waiting);
      waiting.cancelTimer();
      waiting.resolve(this.#inTurn(waiting.append, waiting.serverStream));
    }
  }

  get #hasRoom(): boolean {
    return this.#fault === null && this.#sent < MAX_IN_FLIGHT;
  }

  async #inTurn(append: CheckedAppend, serverStream: string): Promise<Appended> {
    this.#sent += 1;
    try {
      return await this.#send(append, serverStream);
    } finally {
      this.#sent -= 1;
      this.#sendMore();
    }
  }

  async #send(append: CheckedAppend, serverStream: string): Promise<Appended> {
    const { clients } = this.#options;
    const redact = (text: string): string => clients.redact(text);
    const calls = (this.#calls ??= new AppendCalls(this.#options));
    try {
      return appendedIn(await calls.send({ append, serverStream }), append, redact);
    } catch (error) {
      if (isRefusal(error)) throw error;
      const cause = clients.redacted(error);
      if (this.#calls === calls) this.#pauseSending(cause);
      if (isDenied(error)) throw new LogDenied({ cause });
      throw new AppendOutcomeUnknown({ stream: append.stream }, { cause });
    }
  }

  /**
   * Sends nothing until the server answers a read, then opens new calls: an append that is not sent is certainly not
   * written. The appends in flight may still be answered on their own calls.
   */
  #pauseSending(fault: Error): void {
    this.#calls?.retire();
    this.#calls = null;
    this.#fault = fault;
    void this.#resumeOnceAnswered();
  }

  async #resumeOnceAnswered(): Promise<void> {
    const { system, roundTrip } = this.#options;
    const { signal } = this.#stopping;
    while (this.#fault !== null && !signal.aborted) {
      try {
        await roundTrip();
        this.#fault = null;
      } catch (error) {
        if (error instanceof LogUnavailable && error.cause instanceof Error) this.#fault = error.cause;
        await wait(system, RETRY_MS, signal);
      }
    }
    this.#sendMore();
  }
}

function hasSameIds(one: CheckedAppend, other: CheckedAppend): boolean {
  if (one.events.length !== other.events.length) return false;
  return one.events.every(({ id }, index) => id === other.events[index]?.id);
}

/** Whether the server has refused the append, which is then certainly not written. */
function isRefusal(error: unknown): boolean {
  return [RevisionConflict, AppendInvalid, AppendTooLarge, StreamRemoved, LogDenied].some(
    (refusal) => error instanceof refusal,
  );
}

/**
 * The result in an answer.
 *
 * @param redact removes the credentials from the server's text
 * @throws {RevisionConflict | AppendInvalid | AppendTooLarge | StreamRemoved | LogDenied} certainly not written
 * @throws {Error} of another class: the append may be written
 */
function appendedIn(answer: AppendAnswer, append: CheckedAppend, redact: (text: string) => string): Appended {
  switch (answer.kind) {
    case 'written':
      return { revision: answer.revision, position: answer.position };
    case 'refused':
      throw refusalIn(answer.status, append, redact);
    case 'unknown':
      throw new Error('The answer has no position');
  }
}

const { WrongExpectedVersion, MaximumAppendSizeExceeded, BadRequest } = sharedPb;

function refusalIn(status: Status, append: CheckedAppend, redact: (text: string) => string): Error {
  const { stream } = append;
  switch (status.getDetails()?.getTypeName()) {
    case 'event_store.client.WrongExpectedVersion':
      return conflictIn(status, append);
    case 'event_store.client.StreamDeleted':
      return new StreamRemoved({ stream });
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const limit = MaximumAppendSizeExceeded.deserializeBinary(bytesIn(status)).getMaxappendsize();
      return new AppendTooLarge({ stream, bytes: limit + 1, limit });
    }
    case 'event_store.client.BadRequest':
      return new AppendInvalid({ stream, reason: redact(BadRequest.deserializeBinary(bytesIn(status)).getMessage()) });
    case 'event_store.client.AccessDenied':
      return new LogDenied({ cause: new Error(redact(status.getMessage())) });
    default:
      // A timeout, a server that is not ready, and a server without a leader.
      return new Error(redact(status.getMessage()));
  }
}

function conflictIn(status: Status, { stream, expected }: CheckedAppend): RevisionConflict {
  const found = WrongExpectedVersion.deserializeBinary(bytesIn(status));
  const actual = found.hasCurrentStreamRevision() ? Number(found.getCurrentStreamRevision()) : 'none';
  return new RevisionConflict({ stream, expected: expected === 'any' ? 'none' : expected, actual });
}

/** The details of an error, as bytes. */
function bytesIn(status: Status): Uint8Array {
  return status.getDetails()?.getValue_asU8() ?? new Uint8Array();
}
