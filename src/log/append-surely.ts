/** Appends until the answer is certain: an unknown outcome is a state of its own, never a failed run. */
import type { Ambient } from '../ambient.js';
import { AppendOutcomeUnknown, LogUnavailable } from '../errors.js';
import type { Appended, EventLog, ExpectedRevision, NewEvent } from './port.js';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

/**
 * Appends with the same ids and revision until the log says yes or no, waiting between tries.
 *
 * @param options.signal gives up waiting: the outcome then stays open and the last error is thrown
 * @throws {RevisionConflict | AppendTooLarge | AppendInvalid | LogClosed} surely not written
 */
export async function appendSurely(
  log: EventLog,
  { stream, events, expected }: { stream: string; events: readonly NewEvent[]; expected: ExpectedRevision },
  { ambient, signal }: { ambient: Pick<Ambient, 'after'>; signal: AbortSignal },
): Promise<Appended> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)) {
    try {
      return await log.append(stream, events, expected);
    } catch (error) {
      const open = error instanceof AppendOutcomeUnknown || error instanceof LogUnavailable;
      if (!open || signal.aborted) throw error;
      await pause(ambient, waitMs, signal);
    }
  }
}

/** Waits, or until the signal. */
export function pause(ambient: Pick<Ambient, 'after'>, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = ambient.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}
