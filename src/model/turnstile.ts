/** A counted gate that is fair between runs: no run waits longer because another asks more often. */
import { callAborted } from './call-aborted.js';

export interface Turnstile {
  /**
   * Waits for a slot: in order within a run, one after the other between runs. Whoever got one must `leave` once.
   *
   * @throws {ModelFailed} `aborted`, at once, when the signal aborts before a slot is free
   */
  enter(runId: string, signal: AbortSignal): Promise<void>;
  /** Gives a slot back, or hands it to the next in line. */
  leave(): void;
  /** How many wait. */
  waiting(): number;
}

/** A turnstile with this many slots. Its queue is bounded by the callers: a run has at most its graph's nodes waiting. */
export function turnstile(slots: number): Turnstile {
  let free = slots;
  /** Runs in the order of their next turn, each with its waiters in the order they came. No run is without waiters. */
  const lines = new Map<string, Set<() => void>>();

  return {
    enter(runId, signal) {
      if (signal.aborted) return Promise.reject(callAborted(signal));
      if (free > 0) {
        free -= 1;
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        const admit = (): void => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        };
        const giveUp = (): void => {
          withdraw(lines, runId, admit);
          reject(callAborted(signal));
        };
        signal.addEventListener('abort', giveUp, { once: true });
        lines.set(runId, (lines.get(runId) ?? new Set()).add(admit));
      });
    },
    leave() {
      const admit = takeNext(lines);
      if (admit === undefined) free += 1;
      else admit();
    },
    waiting: () => [...lines.values()].reduce((sum, line) => sum + line.size, 0),
  };
}

type Lines = Map<string, Set<() => void>>;

/** Takes the first waiter of the run whose turn it is; that run's next turn comes after all others. */
function takeNext(lines: Lines): (() => void) | undefined {
  for (const [runId, line] of lines) {
    for (const admit of line) {
      line.delete(admit);
      lines.delete(runId);
      if (line.size > 0) lines.set(runId, line);
      return admit;
    }
  }
  return undefined;
}

function withdraw(lines: Lines, runId: string, admit: () => void): void {
  const line = lines.get(runId);
  line?.delete(admit);
  if (line?.size === 0) lines.delete(runId);
}
