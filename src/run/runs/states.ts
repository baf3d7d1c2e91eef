/**
 * The states of runs in memory. Of each run: its state after the last event that the subscription has delivered, and this
 * instance's newest append until the subscription delivers it, so that a state that was folded to decide an append is not
 * folded again to show it. A paused or ended run that no watcher holds leaves memory; it is folded from the log on demand.
 */
import type { EventLog, RecordedEvent, Acknowledged, RetryPolicy } from '../../eventlog/port.js';
import { appendWithRetry } from '../../eventlog/port.js';
import type { SealedAppend } from '../../eventsourcing/aggregate.js';
import type { RunEvent, RunFact } from '../events.js';
import type { RunState } from '../state.js';
import { isAtRest } from '../state.js';
import type { RecordedLink } from '../stream.js';
import { assertRecordedFollows, foldNext } from '../stream.js';
import type { RunReader } from './reader.js';

/**
 * Limits of the runs that no watcher holds. Above these, the least recently used leave memory, and are folded again with
 * their next event.
 */
export interface StateBounds {
  readonly runs: number;
  /** Characters of topics, materials and drafts. */
  readonly text: number;
}

/** More runs than two instances accept at a time, each with 10,000 pending and 1,000 active runs. */
const BOUNDS = { runs: 25_000, text: 200_000_000 } as const;

/** An append of this instance to a run. */
export interface OwnAppend {
  /** The recorded run that it was decided on, or null if it begins the run. */
  readonly before: RunState | null;
  readonly events: readonly RunEvent[];
  /** Length of the data of its events, as recorded. */
  readonly characters: number;
  /** The run once it is recorded. */
  readonly after: RunState;
}

/** Receives the appends of this instance. */
export interface AppendObserver {
  /** Called once for each append to a run, when it is acknowledged. Must not throw. */
  onRunAppended(append: OwnAppend): void;
}

/** What is in memory of a run. */
interface Entry {
  /** The run after the last delivered event, or null if it must be folded from the log. */
  run: RunState | null;
  /** The newest append of this instance, or null once its last event is delivered. The appends of a run are sequential. */
  append: OwnAppend | null;
  /** Settles when the run is folded from the log, or null if nobody folds it. */
  loading: Promise<void> | null;
  /** Watchers and folds that keep the run in memory. */
  holders: number;
  /** Number of characters that count against the limit. */
  text: number;
}

export class RunStates {
  readonly #reader: Pick<RunReader, 'fold' | 'events'>;
  readonly #bounds: StateBounds;
  /** The least recently used first. */
  readonly #runs = new Map<string, Entry>();
  /** Runs with a holder, which do not count against the limits. */
  #held = 0;
  #text = 0;
  readonly #observers: AppendObserver[] = [];

  /** @param bounds default: enough for all runs under way */
  constructor(reader: Pick<RunReader, 'fold' | 'events'>, bounds: StateBounds = BOUNDS) {
    this.#reader = reader;
    this.#bounds = bounds;
  }

  /** Adds observers of the appends of this instance. */
  subscribe(...observers: readonly AppendObserver[]): void {
    this.#observers.push(...observers);
  }

  /** Runs in memory. */
  get size(): number {
    return this.#runs.size;
  }

  /** The run after its last delivered event, or null if it is not in memory. */
  get(runId: string): RunState | null {
    return this.#runs.get(runId)?.run ?? null;
  }

  /**
   * Makes an append of this instance, retried by the policy. Keeps its states from before the append, because the
   * subscription may deliver it before the log acknowledges it.
   *
   * @throws as `appendWithRetry` does; the append is then forgotten
   */
  async append(
    log: Pick<EventLog, 'append'>,
    sealed: SealedAppend<RunFact>,
    { before, after, retryPolicy }: Pick<OwnAppend, 'before' | 'after'> & { readonly retryPolicy: RetryPolicy },
  ): Promise<Acknowledged> {
    let characters = 0;
    for (const { data } of sealed.events) characters += data.length;
    const append: OwnAppend = { before, events: sealed.recorded, characters, after };
    const { runId } = after;
    const entry = this.#of(runId);
    entry.append = append;
    this.#settle(runId, entry);
    try {
      const acknowledged = await appendWithRetry(log, sealed, retryPolicy);
      for (const observer of this.#observers) observer.onRunAppended(append);
      return acknowledged;
    } catch (error) {
      const current = this.#runs.get(runId);
      if (current?.append === append) {
        current.append = null;
        this.#settle(runId, current);
      }
      throw error;
    }
  }

  /**
   * The run after an event that the subscription delivers, or a later recorded state of it, without a fold. Null if another
   * instance made the append, which the event's id shows, or if the append is not in memory: then the caller folds the event.
   */
  folded(runId: string, delivered: Pick<RecordedEvent, 'revision' | 'id'>): RunState | null {
    const entry = this.#runs.get(runId);
    const own = entry === undefined ? null : ownStateAfter(entry, delivered);
    if (entry === undefined || own === null) return null;
    if (entry.run === null || own.head.seq > entry.run.head.seq) entry.run = own;
    const { run } = entry;
    this.#settle(runId, entry);
    return run;
  }

  /**
   * Folds a delivered event; skips events that are folded already.
   *
   * @param link given if the hash of the event must be verified
   * @returns the run after the event, or after later ones; or null if the log has no such run
   * @throws {RunCorrupt} the event is invalid; the run keeps its last valid state
   */
  async fold(runId: string, event: RunEvent, link: RecordedLink | null = null): Promise<RunState | null> {
    const entry = this.#of(runId);
    const release = this.hold(runId);
    try {
      if (entry.run === null) {
        const isNew = event.type === 'RunRequested' && entry.loading === null;
        if (isNew) entry.run = foldNext(runId, null, event);
        else await this.#load(runId, entry);
      }
      if (entry.run === null) return null;
      const { head } = entry.run;
      if (link !== null && event.seq === head.seq + 1) assertRecordedFollows(runId, head, link);
      return (entry.run = stateWith(entry.run, event));
    } finally {
      release();
    }
  }

  /**
   * The run after the last event of its record, or null if there is no such run. Reads what the subscription has not
   * delivered yet. The caller holds the run.
   *
   * @throws {RunCorrupt | LogUnavailable}
   */
  async newest(runId: string): Promise<RunState | null> {
    const entry = this.#of(runId);
    if (entry.run === null) await this.#load(runId, entry);
    if (entry.run === null) return null;
    // The subscription may fold the same events meanwhile.
    for await (const event of this.#reader.events(runId, { from: entry.run.head.seq + 1 }))
      entry.run = stateWith(entry.run, event);
    return entry.run;
  }

  /** Keeps a run in memory until the returned function is called. */
  hold(runId: string): () => void {
    const entry = this.#of(runId);
    if (entry.holders === 0) this.#held += 1;
    entry.holders += 1;
    return () => {
      entry.holders -= 1;
      if (entry.holders === 0) this.#held -= 1;
      this.#settle(runId, entry);
    };
  }

  #of(runId: string): Entry {
    const known = this.#runs.get(runId);
    if (known !== undefined) return known;
    const entry = { run: null, append: null, loading: null, holders: 0, text: 0 };
    this.#runs.set(runId, entry);
    return entry;
  }

  /** Folds a run from the log, once for all who wait for it. They hold the run. */
  #load(runId: string, entry: Entry): Promise<void> {
    entry.loading ??= this.#reader
      .fold(runId)
      .then((run) => {
        if (run !== null && (entry.run === null || run.head.seq > entry.run.head.seq)) entry.run = run;
      })
      .finally(() => (entry.loading = null));
    return entry.loading;
  }

  /** Makes a run the most recently used. Drops it if nothing of it needs memory, and others above the limits. */
  #settle(runId: string, entry: Entry): void {
    this.#drop(runId, entry);
    if (entry.holders > 0) return void this.#runs.set(runId, entry);
    if (entry.run !== null && isAtRest(entry.run)) entry.run = null;
    if (entry.run === null && entry.append === null) return;
    this.#runs.set(runId, entry);
    entry.text = textIn(entry.run);
    this.#text += entry.text;
    for (const [oldest, each] of this.#runs) {
      if (this.#runs.size - this.#held <= this.#bounds.runs && this.#text <= this.#bounds.text) return;
      if (each.holders === 0) this.#drop(oldest, each);
    }
  }

  #drop(runId: string, entry: Entry): void {
    this.#runs.delete(runId);
    this.#text -= entry.text;
    entry.text = 0;
  }
}

/** A run with an event, which may be folded already. @throws {RunCorrupt} */
function stateWith(run: RunState, event: RunEvent): RunState {
  return event.seq === run.head.seq + 1 ? foldNext(run.runId, run, event) : run;
}

function textIn(run: RunState | null): number {
  if (run === null) return 0;
  const { request, progress } = run;
  return progress.inputTopic.length + (request.material?.length ?? 0) + (progress.shown.draft?.length ?? 0);
}

/** The run after a delivered event, by this instance's newest append, or null. Forgets the append with its last event. */
function ownStateAfter(entry: Entry, { revision, id }: Pick<RecordedEvent, 'revision' | 'id'>): RunState | null {
  if (entry.append === null) return null;
  const { before, events, after } = entry.append;
  if (before !== null && revision <= before.head.seq) return before;
  // Another instance has appended after it.
  if (revision > after.head.seq) entry.append = null;
  if (!events.some((event) => event.seq === revision && event.id === id)) return null;
  if (revision === after.head.seq) entry.append = null;
  return after;
}
