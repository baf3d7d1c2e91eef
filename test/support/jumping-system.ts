/** The real system with clocks that a test can set forward: timers that are due then call back at once, in order. */
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';

export interface JumpingSystem extends System {
  jump(ms: number): void;
}

interface Timer {
  readonly dueMs: number;
  readonly fire: () => void;
}

export function jumpingSystem(): JumpingSystem {
  const system = nodeSystem();
  const timers = new Set<Timer>();
  let jumpedMs = 0;
  const monotonicMs = (): number => system.monotonicMs() + jumpedMs;
  return {
    ...system,
    monotonicMs,
    now: () => new Date(Date.now() + jumpedMs).toISOString(),
    after(ms, callback) {
      const cancelReal = system.after(ms, () => timer.fire());
      const cancel = (): void => {
        cancelReal();
        timers.delete(timer);
      };
      const timer = {
        dueMs: monotonicMs() + ms,
        fire() {
          cancel();
          callback();
        },
      };
      timers.add(timer);
      return cancel;
    },
    jump(ms) {
      jumpedMs += ms;
      const due = [...timers].filter(({ dueMs }) => dueMs <= monotonicMs());
      for (const timer of due.sort((one, other) => one.dueMs - other.dueMs)) if (timers.has(timer)) timer.fire();
    },
  };
}
