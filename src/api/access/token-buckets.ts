/** Token buckets: how often each of many names may do something. */
import type { System } from '../../system/system.js';

/** A token bucket: `quota` tokens at once, refilled evenly within a window. */
export interface Rate {
  readonly quota: number;
  readonly windowSeconds: number;
}

/** A quota after a request. */
export interface QuotaState {
  readonly isGranted: boolean;
  /** How many more requests are granted now. */
  readonly left: number;
  /** Whole seconds until the next one is granted. */
  readonly nextSeconds: number;
}

/**
 * Token buckets by name; a new bucket is full. Libraries read the machine's clock and keep a timer for each name
 * (rate-limiter-flexible 11, limiter 4); here time is an argument and the number of names is bounded.
 */
export interface TokenBuckets {
  take(name: string): QuotaState;
}

/** The service keeps between this many and twice as many buckets, those used last; others are full again. 100 bytes each. */
const KEPT_BUCKETS = 5_000;

export function tokenBuckets({ quota, windowSeconds }: Rate, system: Pick<System, 'monotonicMs'>): TokenBuckets {
  const windowMs = windowSeconds * 1_000;
  const eachMs = windowMs / quota;
  const fullAtMs = recentlySet(KEPT_BUCKETS);
  return {
    take(name) {
      const nowMs = system.monotonicMs();
      const missingMs = Math.max(0, (fullAtMs.get(name) ?? nowMs) - nowMs);
      // Rounding errors of the sum are far below one token.
      const available = Math.floor((windowMs - missingMs) / eachMs + 1e-6);
      const isGranted = available >= 1;
      const [left, missing] = isGranted ? [available - 1, missingMs + eachMs] : [0, missingMs];
      fullAtMs.set(name, nowMs + missing);
      const nextMs = missing - (windowMs - (left + 1) * eachMs);
      return { isGranted, left, nextSeconds: Math.max(1, Math.ceil(nextMs / 1_000)) };
    },
  };
}

/** Numbers by name, of which those set last are kept. Two generations, because a Map finds its oldest entry slowly. */
function recentlySet(kept: number): Pick<Map<string, number>, 'get'> & { set(name: string, value: number): void } {
  let [current, previous] = [new Map<string, number>(), new Map<string, number>()];
  return {
    get: (name) => current.get(name) ?? previous.get(name),
    set(name, value) {
      current.set(name, value);
      if (current.size < kept) return;
      previous = current;
      current = new Map();
    },
  };
}
