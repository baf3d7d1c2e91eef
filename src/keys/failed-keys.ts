/** Failed keys, by the address they came from: guessing is slowed, a valid key never is. */
import type { System } from '../system/system.js';

/** Failed attempts per address and window before 429. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
/** Most addresses remembered; the one with the oldest window is forgotten first. */
const MAX_ADDRESSES = 10_000;

export interface FailedKeys {
  /** Counts a failure. Returns how long this address must wait, in whole seconds; null: it has attempts left. */
  failed(address: string): number | null;
}

interface Window {
  readonly endsMs: number;
  failures: number;
}

export function failedKeys({ monotonicMs }: Pick<System, 'monotonicMs'>): FailedKeys {
  const windows = new Map<string, Window>();
  const begin = (address: string, endsMs: number): Window => {
    // In the order of their beginnings.
    windows.delete(address);
    const window = { endsMs, failures: 0 };
    windows.set(address, window);
    const [oldest] = windows.keys();
    if (windows.size > MAX_ADDRESSES && oldest !== undefined) windows.delete(oldest);
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
