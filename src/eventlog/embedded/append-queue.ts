/**
 * Group commit: appends that arrive while a batch is being made durable wait and go together into the next one, so many
 * writers cost hardly more syncs than one.
 */
import { AppendOutcomeUnknown, LogUnavailable, RevisionConflict } from '../errors.js';
import type { FileFault } from './faults.js';
import { numberIn } from './cells.js';
import { elementAt } from '../../system/element.js';
import type { AppendBatch } from './messages.js';
import { NUMBERS_PER_OUTCOME, OUTCOME } from './messages.js';
import { positionOf } from './messages.js';
import type { Appended, ExpectedRevision, NewEvent, RecordedEvent } from '../port.js';

/** Bounds of the queue; an append beyond them is refused and certainly not sent. */
const MAX_WAITING = 50_000;
const MAX_WAITING_CHARS = 128 * 1024 * 1024;

/** Bounds of one transaction, and so of how long one append can delay the next. */
const MAX_BATCH = 1_000;
const MAX_BATCH_CHARS = 8 * 1024 * 1024;

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
  /** Each event's metadata as JSON. */
  readonly metadata: readonly string[];
}

/** Writers resolved before the next batch may be sent: what they append is written while the rest are resolved. */
const RESOLVED_AT_ONCE = 16;

interface Waiting extends CheckedAppend {
  readonly chars: number;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

export interface AppendQueueDeps {
  /** Makes a batch durable; resolves with its outcomes, rejects when the outcome is unknown. */
  readonly write: (batch: AppendBatch) => Promise<readonly number[]>;
  /** Called with what was written, in the log's order, before its writers are resolved. */
  readonly onWritten: (
    append: CheckedAppend,
    appended: { readonly revision: number; readonly ordinal: number },
  ) => void;
  /** The error for an append that was not written. */
  readonly refusal: (fault: FileFault) => Error;
}

/** Holds the appends that wait and the batch in flight. */
export class AppendQueue {
  readonly #deps: AppendQueueDeps;
  #waiting: Waiting[] = [];
  #chars = 0;
  #isWriting = false;
  #isDue = false;
  #whenIdle: (() => void)[] = [];

  constructor(deps: AppendQueueDeps) {
    this.#deps = deps;
  }

  /** Resolves once durable; rejects with the errors of `EventLog.append`. */
  add(append: CheckedAppend): Promise<Appended> {
    const chars = append.events.reduce((sum, event) => sum + event.data.length, 0);
    if (this.#waiting.length >= MAX_WAITING || this.#chars + chars > MAX_WAITING_CHARS) {
      return Promise.reject(new LogUnavailable());
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ chars, resolve, reject, ...append });
      this.#chars += chars;
      this.#sendSoon();
    });
  }

  /** Resolves once nothing waits and no batch is in flight. */
  idle(): Promise<void> {
    if (this.#waiting.length === 0 && !this.#isWriting) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Rejects the appends that wait: they were certainly not sent. */
  refuse(fault: LogUnavailable): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#chars = 0;
    for (const { reject } of waiting) reject(fault);
  }

  /** Sends at the end of this event loop turn, so that appends made together are sent together. */
  #sendSoon(): void {
    if (this.#isDue || this.#isWriting) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#nextBatch();
    if (batch.length > 0) {
      this.#isWriting = true;
      await this.#write(batch);
      this.#isWriting = false;
    }
    if (this.#waiting.length > 0) return this.#sendSoon();
    for (const callback of this.#whenIdle.splice(0)) callback();
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await this.#deps.write(batchOf(batch));
      batch.forEach((append, index) => this.#publish(append, outcomes, index * NUMBERS_PER_OUTCOME));
      this.#resolveWriters(batch, outcomes, 0);
    } catch (cause) {
      for (const { stream, reject } of batch) reject(new AppendOutcomeUnknown({ stream }, { cause }));
    }
  }

  #resolveWriters(batch: readonly Waiting[], outcomes: readonly number[], from: number): void {
    const until = Math.min(batch.length, from + RESOLVED_AT_ONCE);
    const settle = settler(outcomes, this.#deps.refusal);
    batch.slice(from, until).forEach((append, at) => settle(append, (from + at) * NUMBERS_PER_OUTCOME));
    if (until < batch.length) setImmediate(() => this.#resolveWriters(batch, outcomes, until));
  }

  #publish(append: Waiting, outcomes: readonly number[], at: number): void {
    if (outcomes[at] !== OUTCOME.written) return;
    this.#deps.onWritten(append, { revision: numberIn(outcomes, at + 1), ordinal: numberIn(outcomes, at + 2) });
  }

  #nextBatch(): readonly Waiting[] {
    let size = 0;
    for (let chars = 0; size < Math.min(this.#waiting.length, MAX_BATCH) && chars < MAX_BATCH_CHARS; size += 1) {
      chars += elementAt(this.#waiting, size).chars;
    }
    const batch = this.#waiting.splice(0, size);
    for (const { chars } of batch) this.#chars -= chars;
    return batch;
  }
}

/** The events of an append as they were recorded. */
export function recordedOf(
  { stream, events }: CheckedAppend,
  { revision, ordinal }: { readonly revision: number; readonly ordinal: number },
): readonly RecordedEvent[] {
  return events.map(({ id, type, data, metadata }, index) => {
    const fromLast = events.length - 1 - index;
    const position = positionOf(ordinal - fromLast);
    return { id, type, data, metadata, stream, revision: revision - fromLast, position };
  });
}

function batchOf(appends: readonly Waiting[]): AppendBatch {
  const texts: string[] = [];
  for (const { events, metadata } of appends) {
    events.forEach(({ id, type, data }, index) => texts.push(id, type, data, metadata[index] ?? '{}'));
  }
  return {
    streams: appends.map(({ stream }) => stream),
    expected: appends.map(({ expected }) => (expected === 'none' ? -1 : expected)),
    counts: appends.map(({ events }) => events.length),
    texts,
  };
}

/** Settles a writer's append. */
function settler(
  outcomes: readonly number[],
  refusal: AppendQueueDeps['refusal'],
): (append: Waiting, at: number) => void {
  return ({ stream, expected, resolve, reject }, at) => {
    const [outcome, revision, ordinal] = outcomes.slice(at, at + NUMBERS_PER_OUTCOME);
    if (outcome === undefined || revision === undefined || ordinal === undefined) {
      reject(new AppendOutcomeUnknown({ stream }));
    } else if (outcome === OUTCOME.conflict) {
      reject(new RevisionConflict({ stream, expected, actual: revision < 0 ? 'none' : revision }));
    } else if (outcome === OUTCOME.full) {
      reject(refusal('full'));
    } else if (outcome === OUTCOME.damage) {
      reject(refusal('damage'));
    } else {
      resolve({ revision, position: positionOf(ordinal) });
    }
  };
}
