/**
 * Clock, ids, randomness, hashing and timers. Code below the composition root receives them as an argument: main.ts
 * passes the real system, tests a fixed one.
 */
import { createHash, hash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { performance } from 'node:perf_hooks';

export interface System {
  /** The time now as ISO 8601 text in UTC with milliseconds. */
  now(): string;
  /** Milliseconds on a clock that never goes back; only differences mean anything. */
  monotonicMs(): number;
  /** A version-4 UUID. */
  uuid(): string;
  /** The version-5 UUID of a name in a namespace, which is a UUID. */
  uuidOf(namespace: string, name: string): string;
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
    uuidOf: uuidV5,
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

/** RFC 9562, section 5.5. */
function uuidV5(namespace: string, name: string): string {
  const space = Buffer.from(namespace.replaceAll('-', ''), 'hex');
  const bytes = createHash('sha1').update(space).update(name).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function isEqualBytes(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
