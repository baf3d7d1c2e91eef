/** Retries with growing waits. */
import type { System } from '../system.js';
import type { CancelSignal } from './cancellation.js';
import { wait } from './deadline.js';

/** Waits between tries, in milliseconds: the first, doubled with every failure up to the longest. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The wait after `failures` failures, at least 1. */
export function backoffMs({ firstMs, longestMs }: Backoff, failures: number): number {
  return Math.min(longestMs, firstMs * 2 ** (failures - 1));
}

/** Between two requests to a provider that failed or is busy. */
const PROVIDER_BACKOFF: Backoff = { firstMs: 500, longestMs: 30_000 };
/** Longest Retry-After of a provider that is honoured, in milliseconds. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** The honoured part of the wait that a provider asked for, in milliseconds, 0 if it asked for none. */
export function honouredMs(retryAfterMs: number | undefined): number {
  return Math.min(LONGEST_RETRY_AFTER_MS, retryAfterMs ?? 0);
}

/**
 * The wait before the next request to a provider: with full jitter, never less than it asked for.
 *
 * @param random in [0, 1): spreads requests that failed together
 */
export function providerWaitMs(failures: number, retryAfterMs: number | undefined, random: number): number {
  return Math.max(backoffMs(PROVIDER_BACKOFF, failures) * random, honouredMs(retryAfterMs));
}

/**
 * The wait that the header `Retry-After` asks for (RFC 9110, section 10.2.3), in milliseconds: seconds, also with decimals, or
 * a date. Null if it is neither.
 */
export function retryAfterMs(text: string, nowMs: number): number | null {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const atMs = /^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}

export interface RetryPolicy {
  readonly system: Pick<System, 'after'>;
  /** Ends the retries: the last error is thrown. */
  readonly signal: CancelSignal;
}

/**
 * Calls a function until it succeeds or its error ends the retries.
 *
 * @param waitMs returns the milliseconds until the next try, or null to throw the error
 */
export async function retry<T>(
  act: () => Promise<T>,
  waitMs: (error: unknown, failures: number) => number | null,
  policy: RetryPolicy,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await act();
    } catch (error) {
      const { system, signal } = policy;
      const delayMs = waitMs(error, failures);
      if (delayMs === null || signal.aborted) throw error;
      await wait(system, delayMs, signal);
    }
  }
}
