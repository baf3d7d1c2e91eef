import { nodeSystem } from '../../src/system/system.js';
import { createHash } from 'node:crypto';
import type { System } from '../../src/system/system.js';
import { seededRandom } from './seeded-random.js';

/** A System whose time changes only when a test advances it. */
export interface ManualSystem extends System {
  /** Advances both clocks and calls the due timers in order. */
  advance(ms: number): void;
  /** Sets the wall clock alone, also backwards. */
  setNow(iso: string): void;
  /** Number of pending timers. */
  timers(): number;
}

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/**
 * Starts at 2026-01-01T00:00:00.000Z. Ids count from 1 and contain the seed, which also determines the random numbers.
 */
export function manualSystem(seed = 1): ManualSystem {
  const timers = new Set<Timer>();
  let elapsedMs = 0;
  let offsetMs = Date.parse('2026-01-01T00:00:00.000Z');
  let ids = 0;

  const after = (delayMs: number, callback: () => void): (() => void) => {
    const timer = { dueMs: elapsedMs + delayMs, callback };
    timers.add(timer);
    return () => timers.delete(timer);
  };
  return {
    now: () => new Date(offsetMs + elapsedMs).toISOString(),
    monotonicMs: () => elapsedMs,
    uuid() {
      ids += 1;
      return `${hex(seed, 8)}-0000-4000-8000-${hex(ids, 12)}`;
    },
    random: seededRandom(seed),
    uuidOf: nodeSystem().uuidOf,
    sha256: (text) => createHash('sha256').update(text, 'utf8').digest('hex'),
    secret() {
      ids += 1;
      return `${seed}-${ids}`.padEnd(43, '_');
    },
    isEqual: (one, other) => one === other,
    after,
    soon: (callback) => void after(0, callback),
    advance(ms) {
      const untilMs = elapsedMs + ms;
      for (let timer = earliest(timers); timer !== undefined && timer.dueMs <= untilMs; timer = earliest(timers)) {
        timers.delete(timer);
        elapsedMs = Math.max(elapsedMs, timer.dueMs);
        timer.callback();
      }
      elapsedMs = untilMs;
    },
    setNow(iso) {
      offsetMs = Date.parse(iso) - elapsedMs;
    },
    timers: () => timers.size,
  };
}

function earliest(timers: ReadonlySet<Timer>): Timer | undefined {
  let first: Timer | undefined;
  for (const timer of timers) if (first === undefined || timer.dueMs < first.dueMs) first = timer;
  return first;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0').slice(-digits);
}
