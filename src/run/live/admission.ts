/** Bounds how many runs are active here at once; the others are queued, first come first served. */
import { TooManyPending } from '../errors.js';

/** Most runs that may be pending, beside the active ones that MAX_ACTIVE_RUNS bounds. */
const MAX_PENDING_RUNS = 10_000;

export interface Admission {
  /** Takes a slot if one is free and no run is waiting for it. */
  tryEnter(): boolean;
  /** Takes a slot in any case, for a paused run that is resumed. */
  enter(): void;
  /** Frees a slot; the run that has waited longest gets it. */
  leave(): void;
  /**
   * Reserves a place in the queue for a run that will wait once it is recorded; no later run overtakes it.
   *
   * @throws {TooManyPending} when no further run may wait
   */
  announce(): void;
  /** Ends a reservation: the run is queued by now, or could not be recorded. */
  arrived(): void;
  /** Queues a run for a slot. */
  wait(runId: string): void;
  /** Whether a run is queued. */
  isWaiting(runId: string): boolean;
  /** Removes a run from the queue. */
  forget(runId: string): void;
  /** Admits no further runs. */
  close(): void;
}

/** @param admit runs a queued run, which holds a slot from then on; it must free it whatever happens */
export function admission(maxActive: number, admit: (runId: string) => void): Admission {
  const waiting = new Set<string>();
  let announced = 0;
  let active = 0;
  let closed = false;

  function fill(): void {
    for (const runId of waiting) {
      if (closed || active >= maxActive) return;
      waiting.delete(runId);
      active += 1;
      admit(runId);
    }
  }

  return {
    tryEnter() {
      if (closed || active >= maxActive || waiting.size + announced > 0) return false;
      active += 1;
      return true;
    },
    enter() {
      active += 1;
    },
    leave() {
      active -= 1;
      fill();
    },
    announce() {
      if (waiting.size + announced >= MAX_PENDING_RUNS) {
        throw new TooManyPending({ limit: MAX_PENDING_RUNS });
      }
      announced += 1;
    },
    arrived() {
      announced -= 1;
    },
    wait(runId) {
      waiting.add(runId);
      fill();
    },
    isWaiting: (runId) => waiting.has(runId),
    forget: (runId) => void waiting.delete(runId),
    close() {
      closed = true;
    },
  };
}
