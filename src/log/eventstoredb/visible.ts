/**
 * Waiting for what the server has told of to be readable: it answers "wrong revision" against a write that is under way,
 * which a read finds only later (measured on 23.10.6: 79 ms on average under load, up to 333 ms).
 */
import type { Ambient } from '../../ambient.js';
import { LogUnavailable } from '../../errors.js';
import { wait } from '../../wait.js';

const FIRST_WAIT_MS = 5;
const LONGEST_WAIT_MS = 100;

/**
 * Reads again and again until something is there.
 *
 * @throws {LogUnavailable} it was not there within the deadline: the write it belonged to may have come to nothing
 */
export async function untilVisible<T>(
  read: () => Promise<T | null>,
  { ambient, deadlineMs }: { readonly ambient: Pick<Ambient, 'after'>; readonly deadlineMs: number },
): Promise<T> {
  const over = new AbortController();
  const cancel = ambient.after(deadlineMs, () => over.abort());
  try {
    for (let waitMs = FIRST_WAIT_MS; !over.signal.aborted; waitMs = Math.min(LONGEST_WAIT_MS, 2 * waitMs)) {
      const found = await read();
      if (found !== null) return found;
      await wait(ambient, waitMs, over.signal);
    }
    throw new LogUnavailable();
  } finally {
    cancel();
  }
}
