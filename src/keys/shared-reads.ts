/**
 * Shares reads of the log between callers. A read starts at most every 100 ms, so that forged keys cause little load.
 */
import type { System } from '../system/system.js';
import { wait } from '../system/async/deadline.js';

/** Time between the starts of two reads, in milliseconds. */
const INTERVAL_MS = 100;

/**
 * Returns a function that resolves after a read that starts after the call.
 * @param read reads up to the head of the log
 */
export function sharedReads(
  read: () => Promise<void>,
  { system, signal }: { readonly system: Pick<System, 'after' | 'monotonicMs'>; readonly signal: AbortSignal },
): () => Promise<void> {
  let next: Promise<void> | null = null;
  let startedMs = Number.NEGATIVE_INFINITY;

  const readNext = async (): Promise<void> => {
    const leftMs = startedMs + INTERVAL_MS - system.monotonicMs();
    if (leftMs > 0) await wait(system, leftMs, signal);
    // Later callers need a newer read, because another instance may add their key after this one starts.
    next = null;
    startedMs = system.monotonicMs();
    await read();
  };
  // Asynchronous, so that `next` is set before readNext resets it.
  return () => (next ??= Promise.resolve().then(readNext));
}
