/** How long a node waits before it is tried again. */
import type { StepFailure } from '../council/step.js';

/** First wait in milliseconds; doubles with every failure up to the longest. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** A provider's Retry-After is honoured up to this (contract, section 1). */
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * Milliseconds until the next attempt: exponential with full jitter, never less than the provider asked for. Where an
 * outage begins only what was asked for, within its budget: the attempt itself waits the outage out, beside all others.
 *
 * @param failures failed attempts of the step that count, this one included if it does
 * @param random in [0, 1)
 * @returns null when no further attempt will be made
 */
export function retryInMs(
  failure: StepFailure,
  {
    failures,
    maxAttempts,
    random,
  }: { readonly failures: number; readonly maxAttempts: number; readonly random: number },
): number | null {
  if (!failure.retryable || failures >= maxAttempts) return null;
  const askedMs = Math.min(LONGEST_RETRY_AFTER_MS, failure.retryAfterMs ?? 0);
  if (failure.outageMs !== undefined) return Math.round(Math.min(askedMs, failure.outageMs));
  const backoffMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1)) * random;
  return Math.round(Math.max(backoffMs, askedMs));
}
