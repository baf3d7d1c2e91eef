/** How many runs are active here at once; the others wait their turn, first come first served. */
import { TooManyPending } from '../../errors.js';

/** Most runs that may wait (contract, section 1, MAX_ACTIVE_RUNS). */
export const MAX_PENDING_RUNS = 10_000;

export interface Admission {
  /** Takes a place if one is free and nobody waits for it. */
  tryEnter(): boolean;
  /** Takes a place in any case: a run that was paused goes on. */
  enter(): void;
  /** Gives a place back; the longest waiting run gets it. */
  leave(): void;
  /**
   * Keeps room for a run that will wait once it is recorded; nobody who comes later gets a place before it.
   *
   * @throws {TooManyPending} when no further run may wait
   */
  announce(): void;
  /** A run that was announced waits by now, or does not come. */
  arrived(): void;
  /** Queues a run for a place. */
  wait(runId: string): void;
  /** A waiting run is gone. */
  forget(runId: string): void;
  /** Nobody is admitted any more. */
  close(): void;
}

/** @param admit runs the run, which holds a place from then on; it must give it back whatever happens */
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
    forget: (runId) => void waiting.delete(runId),
    close() {
      closed = true;
    },
  };
}
