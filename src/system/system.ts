/**
 * Clock, ids, randomness, hashing and timers: everything the code below the composition root may not reach for itself.
 * The domain and the projections import these types only; main.ts passes the real thing, tests a fixed one.
 */
import { hash, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';

export interface System {
  /** The time now as ISO 8601 text in UTC with milliseconds. */
  now(): string;
  /** Milliseconds on a clock that never goes back; only differences mean anything. */
  monotonicMs(): number;
  /** A version-4 UUID. */
  uuid(): string;
  /** A number in [0, 1). */
  random(): number;
  /** SHA-256 of a text's UTF-8, as 64 lower-case hex digits. */
  sha256(text: string): string;
  /** Calls back after a time unless cancelled by the function it returns. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The machine's own clock, ids and timers. */
export function nodeSystem(): System {
  return {
    now: () => new Date().toISOString(),
    monotonicMs: () => performance.now(),
    uuid: () => randomUUID(),
    random: () => Math.random(),
    sha256: (text) => hash('sha256', text, 'hex'),
    after: (delayMs, callback) => {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
  };
}
