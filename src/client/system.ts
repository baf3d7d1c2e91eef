/** Clock, randomness and timers of the host; tests pass their own. */

export interface ClientSystem {
  /** Milliseconds on a clock that never goes back; only differences mean anything. */
  monotonicMs(): number;
  /** A number in [0, 1). */
  random(): number;
  /** A unique text. */
  uuid(): string;
  /** Calls back after a time unless cancelled by the function it returns. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The system of the browser or of Node. */
export function hostSystem(): ClientSystem {
  return {
    monotonicMs: () => performance.now(),
    random: () => Math.random(),
    // Unlike crypto.randomUUID it also works on pages from plain HTTP.
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
