/** The system's own time, with heartbeats that need not be waited for and hours that a test lets go by at once. */
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';

export interface PassingSystem extends System {
  /** Moves its monotonic clock on; timers stay as they are. */
  pass(ms: number): void;
}

/** What is due at these intervals is due soon: heartbeats, and looks at what they tell. */
const SOON_MS = 15;

/** @param intervalsMs of timers that are due soon instead */
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
