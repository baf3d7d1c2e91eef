/** Retries an append until its outcome is certain: an unknown outcome must never be taken for a failure. */
import type { System } from '../system/system.js';
import { AppendOutcomeUnknown, LogUnavailable } from '../errors.js';
import { wait } from '../system/async/wait.js';
import type { Appended, EventLog, ExpectedRevision, NewEvent } from '../eventlog/port.js';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

export interface RetryPolicy {
  readonly system: Pick<System, 'after'>;
  /** Ends the retries: the last error is thrown, and the outcome may stay unknown. */
  readonly signal: AbortSignal;
}

/** One append to one stream. */
export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
}

/**
 * Appends with the same ids and revision until the log acknowledges or refuses, waiting between tries.
 *
 * @throws {RevisionConflict | AppendTooLarge | AppendInvalid | LogClosed} certainly not written
 */
export function appendWithRetry(
  log: EventLog,
  { stream, events, expected }: StreamAppend,
  retryPolicy: RetryPolicy,
): Promise<Appended> {
  return retryWhileUnavailable(() => log.append(stream, events, expected), retryPolicy);
}

/** Calls the log again, with growing waits, as long as it cannot be reached. */
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
