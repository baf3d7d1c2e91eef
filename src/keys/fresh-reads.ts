/** Coalesces log reads for unknown keys: callers share one read, and at most one begins every 100 ms. */
import type { System } from '../system/system.js';
import { wait } from '../system/async/deadline.js';

/** Time between the beginnings of two reads, in milliseconds. */
const INTERVAL_MS = 100;
/** Most callers that wait for a read; further ones get what is known already. */
const MAX_WAITING = 1_000;

export interface FreshReads {
  /** Resolves once a read that has begun after this call is done, or at once when too many wait. */
  fresh(): Promise<void>;
}

/** @param read brings what is known here up to the head of the log */
export function freshReads(
  read: () => Promise<void>,
  { system, signal }: { readonly system: Pick<System, 'after' | 'monotonicMs'>; readonly signal: AbortSignal },
): FreshReads {
  let next: Promise<void> | null = null;
  let waiting = 0;
  let begunMs = Number.NEGATIVE_INFINITY;

  const readNext = async (): Promise<void> => {
    const leftMs = begunMs + INTERVAL_MS - system.monotonicMs();
    if (leftMs > 0) await wait(system, leftMs, signal);
    // Later callers need a newer read: their key may be added after this one began.
    next = null;
    begunMs = system.monotonicMs();
    await read();
  };

  return {
    async fresh() {
      if (waiting >= MAX_WAITING) return;
      waiting += 1;
      try {
        // Never within this call: what it clears must be there.
        await (next ??= Promise.resolve().then(readNext));
      } finally {
        waiting -= 1;
      }
    },
  };
}
