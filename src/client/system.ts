/** Clock, randomness and timers. */

export interface ClientSystem {
  /** Milliseconds of a monotonic clock. */
  monotonicMs(): number;
  /** A number in [0, 1). */
  random(): number;
  /** A unique text. */
  uuid(): string;
  /** Calls back after a time. Returns a function that cancels the timer. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The system of the browser or of Node. */
export function hostSystem(): ClientSystem {
  return {
    monotonicMs: () => performance.now(),
    random: () => Math.random(),
    // crypto.randomUUID does not exist on pages from plain HTTP.
    uuid: () => Array.from(crypto.getRandomValues(new Uint8Array(16)), hexOf).join(''),
    after: (delayMs, callback) => {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
  };
}

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}
