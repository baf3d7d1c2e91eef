/**
 * Group commit: appends that arrive while a batch is being written wait, and are written together in the next batch. So
 * many writers need hardly more syncs than one.
 */
import { AppendOutcomeUnknown, LogUnavailable } from '../errors.js';
import type { NewEvent } from '../port.js';
import type { AppendOutcome, StoredAppend } from './messages.js';

/** Bounds of the queue; an append beyond them is refused and certainly not sent. */
const MAX_WAITING = 50_000;
const MAX_WAITING_CHARS = 128 * 1024 * 1024;

/** Bounds of one transaction, and so of how long one append can delay the next. */
const MAX_BATCH = 1_000;
const MAX_BATCH_CHARS = 8 * 1024 * 1024;

/** An append that has passed its checks. */
export interface CheckedAppend extends StoredAppend {
  readonly events: readonly NewEvent[];
}

interface Waiting {
  readonly append: CheckedAppend;
  readonly chars: number;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: Error) => void;
}

/** Holds the appends that wait, while one batch at a time is written. */
export class AppendQueue {
  /** Makes a batch durable and resolves with an outcome per append; rejects if the outcome is unknown. */
  readonly #write: (batch: readonly CheckedAppend[]) => Promise<readonly AppendOutcome[]>;
  #waiting: Waiting[] = [];
  #chars = 0;
  #isWriting = false;
  #isDue = false;
  readonly #whenIdle: (() => void)[] = [];

  constructor(write: (batch: readonly CheckedAppend[]) => Promise<readonly AppendOutcome[]>) {
    this.#write = write;
  }

  /** @throws {LogUnavailable} certainly not sent @throws {AppendOutcomeUnknown} */
  add(append: CheckedAppend): Promise<AppendOutcome> {
    const chars = append.events.reduce((sum, event) => sum + event.data.length, 0);
    if (this.#waiting.length >= MAX_WAITING || this.#chars + chars > MAX_WAITING_CHARS) {
      return Promise.reject(new LogUnavailable());
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ append, chars, resolve, reject });
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
      await this.#settle(batch);
      this.#isWriting = false;
    }
    if (this.#waiting.length > 0) return this.#sendSoon();
    for (const callback of this.#whenIdle.splice(0)) callback();
  }

  async #settle(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await this.#write(batch.map(({ append }) => append));
      for (const [index, { append, resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index];
        if (outcome === undefined) reject(new AppendOutcomeUnknown({ stream: append.stream }));
        else resolve(outcome);
      }
    } catch (cause) {
      for (const { append, reject } of batch) reject(new AppendOutcomeUnknown({ stream: append.stream }, { cause }));
    }
  }

  #nextBatch(): readonly Waiting[] {
    let chars = 0;
    const end = this.#waiting.findIndex((each, index) => {
      if (index >= MAX_BATCH || chars >= MAX_BATCH_CHARS) return true;
      chars += each.chars;
      return false;
    });
    const batch = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    this.#chars -= chars;
    return batch;
  }
}
