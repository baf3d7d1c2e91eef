/** Reads and verifies runs from the log. It does not read a corrupt run again. */
import type { EventLog } from '../../eventlog/port.js';
import { lastEvent, mayHaveLostEnd } from '../../eventlog/port.js';
import type { VerifiedRange } from '../../eventsourcing/hash-chain.js';
import { semaphore } from '../../system/async/tasks.js';
import type { System } from '../../system/system.js';
import { RunCorrupt } from '../errors.js';
import type { RunEvent } from '../events.js';
import { runStream } from '../events.js';
import type { KnownCorruptRuns } from '../replay.js';
import { endsBefore } from '../replay.js';
import type { RunState } from '../state.js';
import { foldRun, readChecked } from '../stream.js';

export interface RunReaderOptions {
  readonly log: EventLog;
  readonly sha256: System['sha256'];
  readonly corruptRuns: KnownCorruptRuns;
  /**
   * Revision of a run's last event in its view, or null if there is no view. A record that ends before this event is
   * corrupt, if the log may have lost events. Default: null for every run.
   */
  readonly seen?: (runId: string) => Promise<number | null>;
}

/** Where a piece of a record begins: its first event, and the hash of the event before, or null if unknown. */
interface PiecePlace {
  readonly from: number;
  readonly previousHash: string | null;
  readonly maxChars: number;
}

/** Number of records folded at a time, each with two pages of the log in memory. Others wait in order. */
const FOLDS_AT_A_TIME = 16;

export class RunReader {
  readonly #options: RunReaderOptions;
  readonly #folds = semaphore(FOLDS_AT_A_TIME);
  /** The pieces that are being read. */
  readonly #pieces = new Map<string, Promise<readonly RunEvent[]>>();

  constructor(options: RunReaderOptions) {
    this.#options = options;
  }

  /** The run up to its head or a revision, or null if there is no such run. @throws {RunCorrupt} */
  async fold(runId: string, to?: number): Promise<RunState | null> {
    const { log, sha256 } = this.#options;
    await this.assertReaches(runId);
    try {
      return await this.#folds.run(() => foldRun(log, runId, { sha256, ...(to !== undefined && { to }) }));
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** A run's events from a revision on, as they are stored. @throws {RunCorrupt} */
  async *events(runId: string, range: Pick<VerifiedRange, 'from' | 'max' | 'pageChars'> = {}): AsyncIterable<RunEvent> {
    await this.assertReaches(runId);
    try {
      yield* this.#checked(runId, range);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** Applies another fold to a run's record, or to its first events. @throws {RunCorrupt} */
  async folded<T>(runId: string, fold: (events: AsyncIterable<RunEvent>) => Promise<T>, max?: number): Promise<T> {
    await this.assertReaches(runId);
    try {
      return await this.#folds.run(() => fold(this.#checked(runId, { max })));
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /**
   * The next events of a run: at most `maxChars` of stored data, but at least one event, or none at the head. It does
   * not assert that the record reaches its end: see `assertReaches`.
   *
   * @throws {RunCorrupt} the first event is invalid; the piece ends before a later invalid event
   */
  async piece(runId: string, place: PiecePlace): Promise<readonly RunEvent[]> {
    this.#options.corruptRuns.assertNotCorrupt(runId);
    // A crowd of watchers reads the same pieces at the same time: each is read once for all of them. An empty piece is
    // not shared, because the record may have grown since that read began.
    const key = JSON.stringify([runId, place]);
    const shared = this.#pieces.get(key);
    if (shared !== undefined) {
      const events = await shared;
      if (events.length > 0) return events;
    }
    const reading = this.#readPiece(runId, place);
    this.#pieces.set(key, reading);
    return reading.finally(() => this.#pieces.get(key) === reading && this.#pieces.delete(key));
  }

  async #readPiece(runId: string, { from, previousHash, maxChars }: PiecePlace): Promise<readonly RunEvent[]> {
    const events: RunEvent[] = [];
    const range = { from, maxChars, pageChars: maxChars, previousHash: previousHash ?? undefined };
    try {
      for await (const event of this.#checked(runId, range)) events.push(event);
    } catch (error) {
      if (events.length === 0) throw this.#noted(error);
    }
    return events;
  }

  #checked(runId: string, range: Omit<VerifiedRange, 'sha256'>): AsyncGenerator<RunEvent> {
    const { log, sha256 } = this.#options;
    return readChecked(log, runId, { sha256, ...range });
  }

  /** Revision of a run's last event in its view, or -1 if there is none: its record must contain this event. */
  async seen(runId: string): Promise<number> {
    return (await this.#options.seen?.(runId)) ?? -1;
  }

  /** @throws {RunCorrupt} the run was found corrupt, or its record lacks an event that its view contains */
  async assertReaches(runId: string): Promise<void> {
    const { log, corruptRuns } = this.#options;
    corruptRuns.assertNotCorrupt(runId);
    // Read before the record, which only grows.
    const seen = await this.seen(runId);
    if (seen < 0) return;
    const last = (await lastEvent(log, runStream(runId)))?.revision ?? -1;
    if (last < seen && (await mayHaveLostEnd(log, last)))
      throw this.#noted(new RunCorrupt({ runId, seq: last + 1, reason: endsBefore(seen) }));
  }

  #noted(error: unknown): unknown {
    if (error instanceof RunCorrupt) this.#options.corruptRuns.mark(error);
    return error;
  }
}
