/** Bounds how many runs are active in this process; the others are queued, first in, first out. */
import { TooManyPending } from '../errors.js';

/** Most runs that may be pending, beside the active ones that MAX_ACTIVE_RUNS bounds. */
const MAX_PENDING_RUNS = 10_000;

export interface SlotsOptions {
  /** Most active runs. Paused runs that are resumed may exceed it. */
  readonly max: number;
  /**
   * Receives a queued run that has got a slot, with the last known revision of its record, or null if unknown. The receiver
   * must free the slot, also after an error.
   */
  readonly onAdmitted: (runId: string, knownSeq: number | null) => void;
}

export class Slots {
  readonly #options: SlotsOptions;
  /** The queued runs with the last known revisions of their records, or null if unknown. */
  readonly #waiting = new Map<string, number | null>();
  #reserved = 0;
  #active = 0;
  #isClosed = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** Takes a slot if one is free and no run is queued for it. */
  tryEnter(): boolean {
    if (this.#isClosed || this.#active >= this.#options.max || this.#waiting.size + this.#reserved > 0) return false;
    this.#active += 1;
    return true;
  }

  /** Takes a slot even if none is free, for a paused run that is resumed. */
  enter(): void {
    this.#active += 1;
  }

  /** Frees a slot; the run that has waited longest gets it. */
  leave(): void {
    this.#active -= 1;
    this.#fill();
  }

  /**
   * Reserves a place in the queue for a run that is queued once it is recorded; no later run overtakes it.
   *
   * @throws {TooManyPending} when no further run may be queued
   */
  reserve({ isChild = false } = {}): void {
    // Its parent waits for it. The runs of one parent are bounded.
    if (isChild) return void (this.#reserved += 1);
    if (this.#waiting.size + this.#reserved >= MAX_PENDING_RUNS) throw new TooManyPending({ limit: MAX_PENDING_RUNS });
    this.#reserved += 1;
  }

  /** Ends a reservation: the run is queued, or could not be recorded. */
  endReservation(): void {
    this.#reserved -= 1;
  }

  /** Queues a run for a slot. A run that is queued already keeps its place. */
  enqueue(runId: string, knownSeq: number | null): void {
    this.#waiting.set(runId, knownSeq ?? this.#waiting.get(runId) ?? null);
    this.#fill();
  }

  /** How many runs are queued. */
  get queued(): number {
    return this.#waiting.size;
  }

  isQueued(runId: string): boolean {
    return this.#waiting.has(runId);
  }

  dequeue(runId: string): void {
    this.#waiting.delete(runId);
  }

  /** Admits no further runs. */
  close(): void {
    this.#isClosed = true;
  }

  #fill(): void {
    for (const [runId, knownSeq] of this.#waiting) {
      if (this.#isClosed || this.#active >= this.#options.max) return;
      this.#waiting.delete(runId);
      this.#active += 1;
      this.#options.onAdmitted(runId, knownSeq);
    }
  }
}
