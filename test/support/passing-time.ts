/** The real system with short heartbeats and a monotonic clock that tests can advance. */
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';

export interface PassingSystem extends System {
  /** Advances the monotonic clock; timers do not change. */
  pass(ms: number): void;
}

/** Delay of the shortened timers in milliseconds. */
const SOON_MS = 15;

/** @param intervalsMs delays of the timers that are shortened */
export function passingSystem(intervalsMs: readonly number[]): PassingSystem {
  const system = nodeSystem();
  let passedMs = 0;
  return {
    ...system,
    monotonicMs: () => system.monotonicMs() + passedMs,
    after: (ms, callback) => system.after(intervalsMs.includes(ms) ? SOON_MS : ms, callback),
    pass: (ms) => void (passedMs += ms),
  };
}
