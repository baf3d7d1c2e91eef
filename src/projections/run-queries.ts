/**
 * The queries for runs. Each answer is up to date, for the runs of all instances and even if the read models are
 * behind. For a corrupt run each query throws RunCorrupt, except the list, which shows the error.
 */
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import type { EventLog } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { runStream } from '../run/events.js';
import type { LiveRuns } from '../run/runs/repository.js';
import { RunCorrupt, RunErased } from '../run/errors.js';
import type { RunState } from '../run/state.js';
import type { CorruptRuns } from './corrupt-runs.js';
import { failureOf, isFinished, pauseOf } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import type { History } from './run-history.js';
import type { Projector } from './projector.js';
import type { RunReader } from '../run/runs/reader.js';
import type { OverviewQuery, OverviewRows } from './overview.js';
import type { RunCounts, RunFilter, RunListQuery } from './run-list.js';
import type { RunSummary } from './run-summary.js';
import { summaryOf } from './run-summary.js';
import { ViewsLost } from './errors.js';
import { readUpToDate } from './read-up-to-date.js';
import type { System } from '../system/system.js';

/** Largest number of characters of a record in memory for a client that may stop reading. One event may be larger. */
const PAGE_CHARS = 64 * 1024;

/** A page of the record of a run: its stored events up to the head at the time of the query. */
export interface RecordPage {
  /** Revision of the run's last event at the time of the query. */
  readonly head: number;
  /** Revision of the next page, or null at the head. */
  readonly next: number | null;
  /** The events, read as the caller takes them. @throws {RunCorrupt} at the first invalid event */
  events(): AsyncIterable<ExportedEvent>;
}

/** A run at the event of a fork, or the reason why it cannot be forked there. */
export type ForkPoint = { readonly run: RunState } | { readonly run: null; readonly refusal: string };

export interface RunQueriesOptions {
  readonly log: EventLog;
  readonly reader: RunReader;
  readonly history: History;
  readonly projector: Projector;
  readonly system: Pick<System, 'after'>;
  readonly corruptRuns: Pick<CorruptRuns, 'assertNotCorrupt' | 'shown'>;
  readonly live: LiveRuns;
}

/** @throws {RunErased} the views show the erasure of the run */
export async function assertNotErased(history: Pick<History, 'erasedAs'>, runId: string): Promise<void> {
  const erased = await history.erasedAs('run', runId).catch(ifLost);
  if (erased !== null) throw new RunErased({ runId, erased });
}

/** Without the views, the log decides whether a run is erased. */
function ifLost(error: unknown): null {
  if (error instanceof ViewsLost) return null;
  throw error;
}

export class RunQueries {
  readonly #options: RunQueriesOptions;

  constructor(options: RunQueriesOptions) {
    this.#options = options;
  }

  /**
   * One run: from its actor while it runs here, from the history after its end, or otherwise folded from its stream.
   */
  async find(runId: string): Promise<RunSummary | null> {
    const { reader, history, corruptRuns, live } = this.#options;
    corruptRuns.assertNotCorrupt(runId);
    const running = live.get(runId)?.run ?? null;
    if (running !== null) return summaryOf(running);
    const stored = await history.find(runId);
    if (stored !== null && stored.completedAt !== null) return stored;
    const run = await reader.fold(runId);
    return run === null ? null : summaryOf(run);
  }

  /** @throws {RunErased} */
  async assertNotErased(runId: string): Promise<void> {
    const { history, live } = this.#options;
    if (!live.has(runId)) await assertNotErased(history, runId);
  }

  /** One run as the list shows it: a corrupt one as failed. */
  async listed(runId: string): Promise<RunSummary | null> {
    try {
      return await this.find(runId);
    } catch (error) {
      if (!(error instanceof RunCorrupt)) throw error;
      const stored = await readUpToDate(this.#options, () => this.#options.history.stored(runId));
      return stored && this.#options.corruptRuns.shown(stored);
    }
  }

  /** The full state of one run: from its actor while it runs here, or otherwise folded from its stream. */
  async state(runId: string): Promise<RunState | null> {
    const { reader, corruptRuns, live } = this.#options;
    corruptRuns.assertNotCorrupt(runId);
    return live.get(runId)?.run ?? (await reader.fold(runId));
  }

  /** One run folded from its stream up to an event, or up to its head if that is earlier. */
  async folded(runId: string, to?: number): Promise<RunState | null> {
    return await this.#options.reader.fold(runId, to);
  }

  /**
   * A run at the event of a fork, or null if there is no such run. Verifies its complete record, so that a
   * fork inherits nothing corrupt. @throws {RunCorrupt}
   */
  async forkPoint(runId: string, at: number): Promise<ForkPoint | null> {
    let run: RunState | null = null;
    let point: RunState | null = null;
    for await (const event of this.#options.reader.events(runId)) {
      run = foldNext(runId, run, event);
      if (event.seq === at) point = run;
    }
    if (run === null) return null;
    // Its graph is not runnable.
    const failure = failureOf(run);
    if (failure?.kind === 'not_runnable') return { run: null, refusal: failure.error };
    if (point === null) return { run: null, refusal: `the last event is at seq ${run.head.seq}` };
    if (isFinished(point)) return { run: null, refusal: `the run is ${point.phase.status} there` };
    if (pauseOf(point)?.decision === 'reject') return { run: null, refusal: 'a human has rejected the run there' };
    return { run: point };
  }

  /** A page of the history, by default newest first, with everything recorded before the call. */
  async list(query: RunListQuery): Promise<readonly RunSummary[]> {
    const { history, corruptRuns } = this.#options;
    const found = await readUpToDate(this.#options, () => history.list(query));
    return found.map((run) => corruptRuns.shown(run));
  }

  /** Number of runs in the history, with everything recorded before the call. */
  async count(filter: RunFilter): Promise<number> {
    return await readUpToDate(this.#options, () => this.#options.history.count(filter));
  }

  /** Numbers of runs by status and outcome, of one moment: each run counts once, also while it changes. */
  async counts(filter: RunFilter): Promise<RunCounts> {
    return await readUpToDate(this.#options, () => this.#options.history.counts(filter));
  }

  /** Counts of ended and waiting runs, with everything recorded before the call. */
  async overview(query: OverviewQuery): Promise<OverviewRows> {
    return await readUpToDate(this.#options, () => this.#options.history.overview(query));
  }

  /** A run's events from a revision on, or null if there is no such run. */
  async record(
    runId: string,
    { from, limit }: { readonly from: number; readonly limit: number },
  ): Promise<RecordPage | null> {
    const { reader } = this.#options;
    await reader.assertReaches(runId);
    const head = (await lastEvent(this.#options.log, runStream(runId)))?.revision ?? null;
    if (head === null) return null;
    const max = Math.max(0, Math.min(limit, head + 1 - from));
    const events = (): AsyncIterable<ExportedEvent> => reader.events(runId, { from, max, pageChars: PAGE_CHARS });
    return { head, next: from + limit <= head ? from + limit : null, events };
  }
}
