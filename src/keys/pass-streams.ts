/**
 * Passes, which are sessions and tickets: random values that stand for a key for a while. Each has a stream of its own,
 * named by its hash, so that every instance honours it by a read of the log.
 */
import type { EventLog } from '../eventlog/port.js';
import { appendFacts } from '../eventsourcing/handle-command.js';
import type { ExportedEvent, Fact, SealedEvent } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { semaphore } from '../system/async/semaphore.js';
import { TaskTracker } from '../system/async/task-tracker.js';
import { KeysCorrupt, LookupsCrowded } from './errors.js';
import type { EventReader } from './events.js';

/** Streams read at a time, and reads that may wait: made-up passes cause no more load than that. */
const READS_AT_A_TIME = 32;
const MAX_WAITING_READS = 2_000;
/** Most events of a pass: its opening and its end. */
const MAX_EVENTS = 2;

export interface PassDeps {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
}

/** Whether a text has the form of a pass; only then is the log read. */
export function isPassText(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** The streams of one kind of pass. */
export interface PassStreams<F extends Fact> {
  /** The pass that a stream belongs to; null: it is of another category. */
  idOf(stream: string): string | null;
  /** None for an unknown pass, and for one that cannot be read: it lets nobody in. @throws {LogUnavailable | LookupsCrowded} */
  read(id: string): Promise<readonly SealedEvent<F>[]>;
  /** @throws {RevisionConflict} when `before` were not all events of the pass */
  append(id: string, fact: F, before: readonly SealedEvent<F>[]): Promise<void>;
  /** Waits for appends in flight to get one answer of the log. */
  stop(): Promise<void>;
}

export function passStreams<F extends Fact>(
  category: string,
  reader: EventReader<SealedEvent<F> & ExportedEvent>,
  deps: PassDeps,
): PassStreams<F> {
  const { log, system } = deps;
  const reads = semaphore(READS_AT_A_TIME, { maxWaiting: MAX_WAITING_READS, full: () => new LookupsCrowded() });
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
