/** Appends until the answer is certain: an unknown outcome is a state of its own, never a failed run. */
import type { System } from '../system/system.js';
import { AppendOutcomeUnknown, LogUnavailable } from '../errors.js';
import { wait } from '../system/async/wait.js';
import type { Appended, EventLog, ExpectedRevision, NewEvent } from '../eventlog/port.js';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

export interface RetryPolicy {
  readonly system: Pick<System, 'after'>;
  /** Gives up waiting: the last error is thrown, and what it leaves open stays open. */
  readonly signal: AbortSignal;
}

/**
 * Appends with the same ids and revision until the log says yes or no, waiting between tries.
 *
 * @throws {RevisionConflict | AppendTooLarge | AppendInvalid | LogClosed} surely not written
 */
export function appendWithRetry(
  log: EventLog,
  { stream, events, expected }: { stream: string; events: readonly NewEvent[]; expected: ExpectedRevision },
  patience: RetryPolicy,
): Promise<Appended> {
  return retryWhileUnavailable(() => log.append(stream, events, expected), patience);
}

/** Asks the log for something, again and again with waits between, as long as it cannot be reached. */
export async function retryWhileUnavailable<T>(ask: () => Promise<T>, { system, signal }: RetryPolicy): Promise<T> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)) {
    try {
      return await ask();
    } catch (error) {
      const open = error instanceof AppendOutcomeUnknown || error instanceof LogUnavailable;
      if (!open || signal.aborted) throw error;
      await wait(system, waitMs, signal);
    }
  }
}
