/**
 * Clock, ids, randomness, hashing and timers. Code below the composition root receives them as an argument: main.ts
 * passes the real system, tests a fixed one.
 */
import { hash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
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
  /** A text that cannot be guessed: 256 random bits as 43 characters of base64url. */
  secret(): string;
  /** Whether two texts are equal; the time taken depends only on their lengths. */
  isEqual(one: string, other: string): boolean;
  /** Calls back after a time, unless the caller cancels it with the returned function. */
  after(delayMs: number, callback: () => void): () => void;
  /** Calls back in the next turn of the event loop, after the messages that have arrived. */
  soon(callback: () => void): void;
}

/** The machine's own clock, ids and timers. */
export function nodeSystem(): System {
  return {
    now: () => new Date().toISOString(),
    monotonicMs: () => performance.now(),
    uuid: () => randomUUID(),
    random: () => Math.random(),
    sha256: (text) => hash('sha256', text, 'hex'),
    secret: () => randomBytes(32).toString('base64url'),
    isEqual: (one, other) => isEqualBytes(Buffer.from(one), Buffer.from(other)),
    after: (delayMs, callback) => {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
    soon: (callback) => void setImmediate(callback),
  };
}

function isEqualBytes(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
