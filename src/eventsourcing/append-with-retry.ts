/** Retries an append until its outcome is certain: an unknown outcome is not a failure. */
import { AppendOutcomeUnknown, LogFull, LogUnavailable } from '../eventlog/errors.js';
import type { Backoff, RetryPolicy as Policy } from '../system/async/deadline.js';
import { backoffMs, retry } from '../system/async/deadline.js';
import type { Appended, EventLog, ExpectedRevision, NewEvent } from '../eventlog/port.js';

const BACKOFF: Backoff = { firstMs: 50, longestMs: 2_000 };

/** When the retries end, the last error is thrown, and the outcome may stay unknown. */
export interface RetryPolicy extends Policy {
  /** Whether to wait for a full disk too, for an append that no caller would repeat. */
  readonly waitsForRoom?: boolean;
}

/** One append to one stream. */
export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
}

/** An append that the log has acknowledged. */
export interface Acknowledged extends Appended {
  /** Whether it took more than one try: then others may have appended after it. */
  readonly isRepeated: boolean;
}

/**
 * Appends with the same ids and revision until the log acknowledges or refuses, waiting between tries.
 *
 * @throws {RevisionConflict | AppendTooLarge | AppendInvalid | LogFull | LogCorrupt | LogClosed} certainly not written
 */
export async function appendWithRetry(
  log: Pick<EventLog, 'append'>,
  { stream, events, expected }: StreamAppend,
  retryPolicy: RetryPolicy,
): Promise<Acknowledged> {
  let tries = 0;
  const append = (): Promise<Appended> => {
    tries += 1;
    return log.append(stream, events, expected);
  };
  const { revision, position } = await retryWhileUnavailable(append, retryPolicy);
  return { revision, position, isRepeated: tries > 1 };
}

/** Repeats a call with growing waits while the log is unavailable, or while its disk is full if the policy waits for that. */
export function retryWhileUnavailable<T>(ask: () => Promise<T>, retryPolicy: RetryPolicy): Promise<T> {
  const waitMs = (error: unknown, failures: number): number | null => {
    const isUncertain = error instanceof AppendOutcomeUnknown || error instanceof LogUnavailable;
    return isUncertain || (retryPolicy.waitsForRoom === true && error instanceof LogFull)
      ? backoffMs(BACKOFF, failures)
      : null;
  };
  return retry(ask, waitMs, retryPolicy);
}
