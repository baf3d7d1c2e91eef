/** Deadlines of what a client waits for. */
import type { Ambient } from '../ambient.js';

/**
 * The result of a work that is awaited no longer than a deadline. The work itself goes on; how it ends then is nobody's
 * business here.
 *
 * @throws what the work throws, or what `late` makes at the deadline
 */
export function inTime<T>(
  work: Promise<T>,
  { after, deadlineMs, late }: Pick<Ambient, 'after'> & { readonly deadlineMs: number; readonly late: () => Error },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = after(deadlineMs, () => reject(late()));
    void work.then(resolve, reject).finally(cancel);
  });
}
