/** Counts failed keys by address, which slows guessing. A valid key is never slowed. */
import { BoundedMap } from '../system/bounded-map.js';
import type { System } from '../system/system.js';

/** Failures per address and window before 429. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
/** Largest number of addresses counted; the one with the oldest window is forgotten first. */
const MAX_ADDRESSES = 10_000;

export interface FailedKeys {
  /** Counts a failure. Returns the seconds that this address must wait, a whole number, or null if it need not wait. */
  failed(address: string): number | null;
}

interface Window {
  readonly endsMs: number;
  failures: number;
}

export function failedKeys({ monotonicMs }: Pick<System, 'monotonicMs'>): FailedKeys {
  const windows = new BoundedMap<string, Window>(MAX_ADDRESSES);
  const begin = (address: string, endsMs: number): Window => {
    const window = { endsMs, failures: 0 };
    windows.set(address, window);
    return window;
  };
  return {
    failed(address) {
      const nowMs = monotonicMs();
      const current = windows.get(address);
      const window = current !== undefined && current.endsMs > nowMs ? current : begin(address, nowMs + WINDOW_MS);
      window.failures += 1;
      return window.failures > MAX_FAILURES ? Math.ceil((window.endsMs - nowMs) / 1_000) : null;
    },
  };
}
