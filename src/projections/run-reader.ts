/** Reads and verifies runs from the log; a run that was found corrupt is not read again. */
import type { System } from '../system/system.js';
import { RunCorrupt } from '../run/errors.js';
import type { VerifiedRange } from '../eventsourcing/hash-chain.js';
import type { EventLog } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import type { RunEvent } from '../run/events.js';
import { runStream } from '../run/events.js';
import { endsBefore } from '../run/replay.js';
import type { RunState } from '../run/state.js';
import { foldRun, readChecked } from '../run/stream.js';
import type { CorruptRuns } from './corrupt-runs.js';

export interface RunReaderOptions {
  readonly log: EventLog;
  readonly sha256: System['sha256'];
  readonly corruptRuns: Pick<CorruptRuns, 'found' | 'assertNotCorrupt'>;
  /**
   * Revision of an event that a run has had, as something else than its record knows: a record that ends before it has
   * lost its tail. Null: nothing is known of the run. Default: of no run.
   */
  readonly seen?: (runId: string) => Promise<number | null>;
}

export class RunReader {
  readonly #options: RunReaderOptions;

  constructor(options: RunReaderOptions) {
    this.#options = options;
  }

  /** The run up to its head, or up to a revision; null when there is no such run. @throws {RunCorrupt} */
  async fold(runId: string, to?: number): Promise<RunState | null> {
    const { log, sha256 } = this.#options;
    await this.assertReaches(runId);
    try {
      return await foldRun(log, runId, { sha256, ...(to !== undefined && { to }) });
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** A run's events from a revision on, as they are stored. @throws {RunCorrupt} */
  async *events(runId: string, { from = 0, max }: { from?: number; max?: number } = {}): AsyncIterable<RunEvent> {
    await this.assertReaches(runId);
    try {
      yield* this.#checked(runId, { from, max });
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** Applies another fold to a run's record, or to its first events. @throws {RunCorrupt} */
  async folded<T>(runId: string, fold: (events: AsyncIterable<RunEvent>) => Promise<T>, max?: number): Promise<T> {
    await this.assertReaches(runId);
    try {
      return await fold(this.#checked(runId, { max }));
    } catch (error) {
      throw this.#noted(error);
    }
  }

  #checked(runId: string, range: Omit<VerifiedRange, 'sha256'>): AsyncIterable<RunEvent> {
    const { log, sha256 } = this.#options;
    return readChecked(log, runId, { sha256, ...range });
  }

  /** @throws {RunCorrupt} for a run that was found corrupt, or whose record ends before an event that it has had */
  async assertReaches(runId: string): Promise<void> {
    const { log, corruptRuns, seen: seenOf } = this.#options;
    corruptRuns.assertNotCorrupt(runId);
    // Asked before the record is, which only grows.
    const seen = (await seenOf?.(runId)) ?? null;
    if (seen === null) return;
    const last = (await lastEvent(log, runStream(runId)))?.revision ?? -1;
    if (last < seen) throw this.#noted(new RunCorrupt({ runId, seq: last + 1, reason: endsBefore(seen) }));
  }

  #noted(error: unknown): unknown {
    if (error instanceof RunCorrupt) this.#options.corruptRuns.found(error);
    return error;
  }
}
