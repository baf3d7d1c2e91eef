/** When a delivery that failed is attempted again. */

/** Waits after the first attempts, in milliseconds; after them, an hour each. */
const WAITS_MS = [5_000, 30_000, 120_000, 600_000, 3_600_000];
const HOUR_MS = 3_600_000;
/** How long a delivery is attempted, from its first attempt, in milliseconds. */
const GIVE_UP_MS = 3 * 24 * HOUR_MS;
/**
 * Shortest waits that a receiver can ask for, in milliseconds: after the first attempt, doubled after each, and the longest.
 * If they did not grow, a receiver that always asks for the next attempt at once would fill the log: 100 deliveries that wait
 * for it would add 80 events a second.
 */
const SHORTEST_MS = { first: 1_000, longest: 60_000 };
/** Longest random addition to a wait, as a share of it, so that many deliveries do not come at once. */
const JITTER = 0.2;

export interface FailedAttempt {
  /** Attempts so far, at least 1. */
  readonly attempts: number;
  /** Times in ms since 1970. */
  readonly firstMs: number;
  readonly nowMs: number;
  /** How long the receiver asks to wait, in milliseconds, or null if it does not say. */
  readonly retryAfterMs: number | null;
}

/** Time of the next attempt, in ms since 1970, or null if there is none. The last one is 3 days after the first. */
export function nextAttemptMs(
  { attempts, firstMs, nowMs, retryAfterMs }: FailedAttempt,
  random: () => number,
): number | null {
  const endMs = firstMs + GIVE_UP_MS;
  if (nowMs >= endMs) return null;
  const shortestMs = Math.min(SHORTEST_MS.longest, SHORTEST_MS.first * 2 ** (attempts - 1));
  const waitMs = retryAfterMs === null ? (WAITS_MS[attempts - 1] ?? HOUR_MS) : Math.max(shortestMs, retryAfterMs);
  return Math.min(endMs, Math.ceil(nowMs + waitMs * (1 + JITTER * random())));
}
