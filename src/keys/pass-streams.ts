/**
 * Streams of passes: random texts that stand for a key for a limited time. Each has a stream of its own, named by its hash,
 * so that every instance can read it from the log. Sessions are passes.
 */
import type { EventLog } from '../eventlog/port.js';
import { appendFacts } from '../eventsourcing/aggregate.js';
import type { ExportedEvent, Fact, SealedEvent } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { semaphore, TaskTracker } from '../system/async/tasks.js';
import { KeysCorrupt, TooManyLookups } from './errors.js';
import type { EventReader } from './events.js';

/** Limits of concurrent and waiting reads, so that forged passes cause little load. */
export const READS_AT_A_TIME = 32;
export const MAX_WAITING_READS = 2_000;
/** A pass has at most two events: its opening and its end. */
const MAX_EVENTS = 2;

export interface PassDeps {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
}

/** Whether a text has the form of a pass. The service reads the log only for these. */
export function isPassText(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** The streams of one kind of pass. */
export interface PassStreams<F extends Fact> {
  /** The id of the pass that a stream belongs to, or null for a stream of another category. */
  idOf(stream: string): string | null;
  /** The events of a pass; none if it is unknown or corrupt. @throws {LogUnavailable | TooManyLookups} */
  read(id: string): Promise<readonly SealedEvent<F>[]>;
  /** @throws {RevisionConflict} the pass has more events than `before` */
  append(id: string, fact: F, before: readonly SealedEvent<F>[]): Promise<void>;
  /** Waits until the log has answered the appends in flight. */
  stop(): Promise<void>;
}

export function passStreams<F extends Fact>(
  category: string,
  reader: EventReader<SealedEvent<F> & ExportedEvent>,
  deps: PassDeps,
): PassStreams<F> {
  const { log, system } = deps;
  const reads = semaphore(READS_AT_A_TIME, { maxWaiting: MAX_WAITING_READS, full: () => new TooManyLookups() });
  const tasks = new TaskTracker();
  const prefix = `${category}-`;
  return {
    idOf: (stream) => (stream.startsWith(prefix) ? stream.slice(prefix.length) : null),
    async read(id) {
      const release = await reads.acquire();
      try {
        const events: SealedEvent<F>[] = [];
        const range = { sha256: system.sha256, max: MAX_EVENTS };
        for await (const event of reader.read(log, prefix + id, range)) events.push(event);
        return events;
      } catch (error) {
        if (error instanceof KeysCorrupt) return [];
        throw error;
      } finally {
        release();
      }
    },
    async append(id, fact, before) {
      const facts = { stream: prefix + id, subject: id, head: before.at(-1) ?? null, facts: [fact] };
      await tasks.track(appendFacts(deps, facts, tasks.signal));
    },
    stop: () => tasks.end(),
  };
}
