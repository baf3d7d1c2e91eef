/** Waiting that can be cut short. */
import type { System } from '../system.js';

/** Resolves after a time, or at once when the signal aborts. */
export function wait(system: Pick<System, 'after'>, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = system.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}
