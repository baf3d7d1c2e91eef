/**
 * Token buckets by name: what is taken from one comes back at an even rate. Libraries for this read the machine's clock
 * and keep a timer for each name (rate-limiter-flexible 11, limiter 4); here time is an argument and names have a bound.
 */
import type { System } from '../system/system.js';

/** `quota` at once; what was taken comes back at an even rate, all of it within a window. */
export interface Rate {
  readonly quota: number;
  readonly windowSeconds: number;
}

/** What is left of a quota after a request. */
export interface QuotaState {
  readonly isGranted: boolean;
  /** How many more are granted now. */
  readonly left: number;
  /** Whole seconds until the next one is granted. */
  readonly nextSeconds: number;
}

export interface TokenBuckets {
  /** Takes one from a bucket, which is full when it is first named. */
  take(name: string): QuotaState;
}

/** The buckets used last that are kept at least; twice as many at most. The others are full again. About 100 bytes each. */
const KEPT_BUCKETS = 5_000;

export function tokenBuckets({ quota, windowSeconds }: Rate, system: Pick<System, 'monotonicMs'>): TokenBuckets {
  const windowMs = windowSeconds * 1_000;
  const eachMs = windowMs / quota;
  const fullAtMs = recentlySet(KEPT_BUCKETS);
  return {
    take(name) {
      const nowMs = system.monotonicMs();
      const missingMs = Math.max(0, (fullAtMs.get(name) ?? nowMs) - nowMs);
      // A sum of fractions may be off, by far less than one.
      const there = Math.floor((windowMs - missingMs) / eachMs + 1e-6);
      const isGranted = there >= 1;
      const [left, missing] = isGranted ? [there - 1, missingMs + eachMs] : [0, missingMs];
      fullAtMs.set(name, nowMs + missing);
      const nextMs = missing - (windowMs - (left + 1) * eachMs);
      return { isGranted, left, nextSeconds: Math.max(1, Math.ceil(nextMs / 1_000)) };
    },
  };
}

/**
 * Numbers by name, of which those set last are kept. Two generations, since the first of a Map from which others were
 * deleted before it is slow to find.
 */
function recentlySet(kept: number): Pick<Map<string, number>, 'get'> & { set(name: string, value: number): void } {
  let [young, old] = [new Map<string, number>(), new Map<string, number>()];
  return {
    get: (name) => young.get(name) ?? old.get(name),
    set(name, value) {
      young.set(name, value);
      if (young.size < kept) return;
      old = young;
      young = new Map();
    },
  };
}
