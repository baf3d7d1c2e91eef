/**
 * Sends each append as one call. At most as many calls as one client serves are in flight; the other appends wait here.
 */
import type { EventData } from '@eventstore/db-client';
import {
  ANY,
  MaxAppendSizeExceededError,
  NO_STREAM,
  StreamDeletedError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { elementAt } from '../../system/element.js';
import type { System } from '../../system/system.js';
import { inTime, wait } from '../../system/async/deadline.js';
import {
  AppendInvalid,
  AppendOutcomeUnknown,
  AppendTooLarge,
  LogDenied,
  LogUnavailable,
  RevisionConflict,
} from '../errors.js';
import type { Appended, ExpectedRevision, NewEvent } from '../port.js';
import type { Clients } from './clients.js';
import { isDenied, isInvalid, MAX_CALLS } from './clients.js';
import { positionOf } from './names.js';

/** Most appends without an answer, and most UTF-16 units of their data; more are refused, certainly not sent. */
export const MAX_WAITING = 20_000;
const MAX_WAITING_CHARS = 64 * 1024 * 1024;

/** Wait between two reads that test whether the server answers again, in milliseconds. */
const RETRY_MS = 100;

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision | 'any';
}

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
  }

  #queued(append: CheckedAppend, serverStream: string): Promise<Appended> {
    const { system, deadlineMs } = this.#options;
    return new Promise((resolve) => {
      const onLate = (): void => {
        this.#unsent.delete(waiting);
        resolve(Promise.reject(new LogUnavailable(this.#fault === null ? {} : { cause: this.#fault })));
      };
      const waiting: Waiting = { append, serverStream, resolve, cancelTimer: system.after(deadlineMs, onLate) };
      this.#unsent.add(waiting);
      this.#sendMore();
    });
  }

  #sendMore(): void {
    for (const waiting of this.#unsent) {
      if (this.#fault !== null || this.#sent >= MAX_CALLS) return;
      this.#unsent.delete(waiting);
      waiting.cancelTimer();
      this.#sent += 1;
      const answer = this.#send(waiting).finally(() => {
        this.#sent -= 1;
        this.#sendMore();
      });
      waiting.resolve(answer);
    }
  }

  async #send({ append, serverStream }: Waiting): Promise<Appended> {
    const { clients, system, deadlineMs } = this.#options;
    const { stream, events, expected } = append;
    const options = {
      expectedRevision: typeof expected === 'number' ? BigInt(expected) : EXPECTED_REVISION[expected],
      credentials: clients.credentials,
      requiresLeader: true,
      deadline: deadlineMs,
    };
    try {
      // The client's deadline does not cover its search for the leader.
      const { nextExpectedRevision, position } = await inTime(
        () => clients.call((client) => client.appendToStream(serverStream, events.map(eventData), options)),
        { system, maxMs: deadlineMs, late: () => new Error(`No answer within ${deadlineMs} ms`) },
      );
      if (position === undefined) throw new Error('The answer has no position');
      return { revision: Number(nextExpectedRevision), position: positionOf(position) };
    } catch (error) {
      const refusal = refusalOf(error, append, clients);
      if (refusal !== null) throw refusal;
      const cause = clients.redacted(error);
      this.#pauseSending(cause);
      throw new AppendOutcomeUnknown({ stream }, { cause });
    }
  }

  /** Sends nothing until the server answers a read: an append that is not sent is certainly not written. */
  #pauseSending(fault: Error): void {
    const isPaused = this.#fault !== null;
    this.#fault = fault;
    if (!isPaused) void this.#resumeOnceAnswered();
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

const EXPECTED_REVISION = { none: NO_STREAM, any: ANY } as const;

function hasSameIds(one: CheckedAppend, other: CheckedAppend): boolean {
  if (one.events.length !== other.events.length) return false;
  return one.events.every(({ id }, index) => id === other.events[index]?.id);
}

function eventData({ id, type, data, metadata }: NewEvent): EventData {
  const value = JSON.parse(data) as Record<string, unknown>;
  // As bytes, because the client would carry text through base64.
  const bytes = new TextEncoder().encode(JSON.stringify(metadata));
  return { id, type, contentType: 'application/json', data: value, metadata: bytes };
}

/** The error for an append that is certainly not written, or null if it may be. */
function refusalOf(error: unknown, { stream, expected }: CheckedAppend, clients: Clients): Error | null {
  if (error instanceof WrongExpectedVersionError) {
    const actual = typeof error.actualVersion === 'bigint' ? Number(error.actualVersion) : 'none';
    return new RevisionConflict({ stream, expected: expected === 'any' ? 'none' : expected, actual });
  }
  if (error instanceof StreamDeletedError) return new AppendInvalid({ stream, reason: 'the stream was deleted' });
  if (error instanceof MaxAppendSizeExceededError) {
    const { maxAppendSize: limit } = error;
    return new AppendTooLarge({ stream, bytes: limit + 1, limit });
  }
  if (isInvalid(error)) return new AppendInvalid({ stream, reason: clients.redacted(error).message });
  if (isDenied(error)) return new LogDenied({ cause: clients.redacted(error) });
  return null;
}
