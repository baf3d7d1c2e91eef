/**
 * The folded runs in memory, fed by the projector, read by sockets and the history; a watched run has a small store,
 * which notifies its watchers in slices. Paused and finished runs leave memory unless they are watched; they are folded
 * from the log again on demand.
 */
import type { System } from '../system/system.js';
import type { Slices } from '../system/async/slices.js';
import type { Position, RecordedEvent } from '../eventlog/port.js';
import { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import { isOfStep } from '../run/events.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import { isAtRest } from '../run/state.js';
import { assertFollows, foldNext, runEventOf } from '../run/stream.js';
import type { RunReader } from './run-reader.js';
import type { RunStore, Watcher } from './run-store.js';
import { runStore } from './run-store.js';
import { UnfoldedRuns } from './unfolded-runs.js';

/** What is kept without a watcher; beyond, the least recently used are evicted and folded again with their next event. */
export interface UnwatchedBounds {
  readonly runs: number;
  /** Characters of topics and drafts. */
  readonly text: number;
}

/** More runs than two instances admit at a time, each 10,000 that are pending and 1,000 that are active. */
const BOUNDS = { runs: 25_000, text: 200_000_000 } as const;

interface View {
  run: RunState;
  /** Set once the run is watched: most runs never are, and a store costs more than their fold. */
  store: RunStore | null;
  watchers: number;
  /** Characters of its topic and draft that count against the bound. */
  text: number;
}

export interface RunViewsOptions {
  readonly slices: Slices;
  /** Default: enough for what is under way. */
  readonly bounds?: UnwatchedBounds;
  /** Asked before a run is shown: see run-reader.ts. */
  readonly assertReaches?: RunReader['assertReaches'];
  /** Whether a run does not run here: its row may be written only when it is read. Default: each is written at once. */
  readonly isUnheeded?: (runId: string) => boolean;
  /** Called when a deferred event proves invalid. */
  readonly onCorrupt?: (error: RunCorrupt) => void;
  /** Called when somebody begins to watch a run, before it is read; what it returns, when they leave. */
  readonly onWatched?: () => () => void;
}

export class RunViews {
  readonly #reader: Pick<RunReader, 'fold' | 'events'>;
  readonly #assertReaches: RunReader['assertReaches'];
  readonly #bounds: UnwatchedBounds;
  readonly #slices: Slices;
  readonly #isUnheeded: (runId: string) => boolean;
  readonly #onCorrupt: (error: RunCorrupt) => void;
  readonly #onWatched: () => () => void;
  readonly unfolded = new UnfoldedRuns();
  readonly #views = new Map<string, View>();
  /** Views with a watcher; they do not count against the bound. */
  #watched = 0;
  #text = 0;
  /** While runs may have gaps none is evicted: gaps are noted of runs in memory. */
  #mayHaveGaps = false;
  readonly #loading = new Map<string, Promise<View | null>>();

  constructor(reader: Pick<RunReader, 'fold' | 'events'>, options: RunViewsOptions) {
    this.#reader = reader;
    this.#slices = options.slices;
    this.#bounds = options.bounds ?? BOUNDS;
    this.#assertReaches = options.assertReaches ?? (async () => undefined);
    this.#isUnheeded = options.isUnheeded ?? (() => false);
    this.#onCorrupt = options.onCorrupt ?? (() => undefined);
    this.#onWatched = options.onWatched ?? (() => () => undefined);
  }

  /** Runs held in memory. */
  get size(): number {
    return this.#views.size;
  }

  /** Whether more is held than there are bounds for, because it may not be evicted. */
  get isOverBounds(): boolean {
    return this.#views.size - this.#watched > this.#bounds.runs || this.#text > this.#bounds.text;
  }

  /**
   * Takes one event of the log; events already folded are skipped.
   *
   * @param sha256 given when the event's link to the one before it has to be checked
   * @returns the run after it, or after whatever has been folded beyond it
   * @throws {RunCorrupt} the event is invalid; the view keeps its last valid state
   */
  async apply(runId: string, event: RunEvent, sha256: System['sha256'] | null = null): Promise<RunState | null> {
    const view = this.#views.get(runId) ?? (await this.#open(runId, event));
    if (view === null) return null;
    this.#foldUp(runId, view);
    const missing = event.seq - view.run.head.seq - 1;
    if (missing > 0 && this.unfolded.hasGaps(runId)) {
      this.unfolded.gapRead();
      await this.#catchUp(runId, view, missing);
    }
    const before = view.run;
    if (sha256 !== null && event.seq === before.head.seq + 1) assertFollows(runId, before.head, { event, sha256 });
    const run = this.#advance(runId, view, event);
    this.unfolded.put(runId);
    return run;
  }

  /**
   * The same for a run in memory, whose links need no check: at once. Null when it is not in memory and does not begin
   * by this event, and when events before it were left out.
   */
  applyHeld(runId: string, event: RunEvent): RunState | null {
    const begins = event.type === 'RunRequested' && !this.#loading.has(runId);
    const view = this.#views.get(runId) ?? (begins ? this.#keep(runId, foldNext(runId, null, event)) : null);
    if (view === null) return null;
    const isAfterGap = this.unfolded.hasGaps(runId) && event.seq > this.#heard(runId, view) + 1;
    const isRest = (isAfterGap && view.watchers === 0) || event.seq - 1 === this.unfolded.last(runId);
    if (isRest && isWhole(event)) this.#complete(runId, view, event);
    else if (isAfterGap) return null;
    else this.#foldUp(runId, view);
    return this.#advance(runId, view, event);
  }

  /** Folds an event that ends a run without those before it: it tells all that is told of a completed run here. */
  #complete(runId: string, view: View, event: RunEvent): void {
    this.unfolded.take(runId);
    view.run = foldNext(runId, view.run, event);
    view.store = null;
  }

  /**
   * Defers an event that matters only to the row of its run, which is neither live nor watched here.
   *
   * @param since position up to which everything was taken before it
   * @returns false: it has to be applied
   */
  putOff(runId: string, event: RecordedEvent, since: Position | null): boolean {
    const view = this.#views.get(runId);
    if (view === undefined || !isOfStep(event) || !this.#mayWait(runId, view)) return false;
    // What a watcher has read meanwhile is in memory, and perhaps in no row.
    this.unfolded.add(runId, since, event.revision === this.#heard(runId, view) + 1 ? event : null);
    return true;
  }

  /**
   * Defers writing the row of a run after an event, until rows are read.
   *
   * @param since position up to which everything was taken before the event
   * @returns false: it has to be put
   */
  putOffRow({ runId, phase: { status } }: RunState, since: Position | null): boolean {
    const view = this.#views.get(runId);
    const isUnderWay = status === 'pending' || status === 'running';
    const mayWait = view !== undefined && isUnderWay && this.#mayWait(runId, view);
    if (mayWait) this.unfolded.add(runId, since, null);
    else this.unfolded.put(runId);
    return mayWait;
  }

  #mayWait(runId: string, view: View): boolean {
    return view.watchers === 0 && this.#isUnheeded(runId) && !this.#loading.has(runId);
  }

  /** Revision of the last event that has come of a run; null: it is not in memory. */
  heard(runId: string): number | null {
    const view = this.#views.get(runId);
    return view === undefined ? null : this.#heard(runId, view);
  }

  #heard(runId: string, view: View): number {
    return this.unfolded.last(runId) ?? view.run.head.seq;
  }

  /** A run with all that was put off folded, and all that was left out read: its row is to be put. @throws {RunCorrupt} */
  async whole(runId: string): Promise<RunState | null> {
    if (!this.unfolded.hasGaps(runId)) return this.#foldedUp(runId);
    this.unfolded.gapRead();
    try {
      const view = this.#views.get(runId) ?? (await this.#load(runId));
      if (view !== null) await this.#catchUp(runId, view);
      this.unfolded.put(runId);
      if (view !== null) this.#settle(runId, view);
      return view?.run ?? null;
    } catch (error) {
      if (error instanceof RunCorrupt) this.unfolded.put(runId);
      throw error;
    }
  }

  /** The runs whose rows were put off, as they are now: to be put now. Of those with gaps that is not all. */
  takePutOff(): readonly RunState[] {
    return this.unfolded.ids.map((runId) => this.#foldedUp(runId)).filter((run) => run !== null);
  }

  #foldedUp(runId: string): RunState | null {
    const view = this.#views.get(runId);
    if (view !== undefined) this.#foldUp(runId, view);
    if (!this.unfolded.hasGaps(runId)) this.unfolded.put(runId);
    return view?.run ?? null;
  }

  /** From a position on events of steps are left out: of these runs, and of those in memory. */
  noteGaps(unfinished: readonly UnfinishedRun[], since: Position | null): void {
    this.#mayHaveGaps = true;
    this.unfolded.beginGaps();
    for (const { runId, owner } of unfinished) if (owner !== null) this.unfolded.noteGap(runId, since);
    for (const runId of this.#views.keys()) this.noteGap(runId, since);
  }

  /** The same of one run, if it is in memory and has an owner: without one there are no steps. */
  noteGap(runId: string, since: Position | null): void {
    const owner = this.#views.get(runId)?.run.ownership.owner ?? null;
    if (owner !== null) this.unfolded.noteGap(runId, since);
  }

  /** Whether an event of a run's steps that comes again may be one that was left out. */
  mayLack(runId: string): boolean {
    return this.#views.has(runId) || this.unfolded.hasGaps(runId);
  }

  /** All that was left out has come. */
  closeGaps(): void {
    this.#mayHaveGaps = false;
    this.unfolded.closeGaps((runId) => this.#views.has(runId));
  }

  /** Folds what was put off; at an invalid event the view keeps its last valid state. */
  #foldUp(runId: string, view: View): void {
    try {
      for (const recorded of this.unfolded.take(runId)) this.#take(view, runEventOf(recorded));
    } catch (error) {
      if (!(error instanceof RunCorrupt)) throw error;
      this.#onCorrupt(error);
    }
  }

  /**
   * Adopts the state of a run that was folded elsewhere, at once; returns that, or a later one. Null when the run is
   * watched, or about to be: then every event of it must be applied.
   */
  moveOn(runId: string, run: RunState): RunState | null {
    if (this.#loading.has(runId)) return null;
    const view = this.#views.get(runId) ?? this.#keep(runId, run);
    if (view.watchers > 0) return null;
    this.#foldUp(runId, view);
    this.unfolded.put(runId);
    if (run.head.seq > view.run.head.seq) view.run = run;
    view.store = null;
    this.#settle(runId, view);
    return view.run;
  }

  #advance(runId: string, view: View, event: RunEvent): RunState {
    this.#take(view, event);
    this.#settle(runId, view);
    return view.run;
  }

  /**
   * Follows a run: `onState` is called first with the state as it is recorded, then with the state after every later
   * event, none left out, until the signal.
   *
   * @returns false when there is no such run
   */
  async watch(runId: string, { onState, onCorrupt = () => undefined, signal }: Watcher): Promise<boolean> {
    await this.#assertReaches(runId);
    const joined = await this.#joined(runId);
    if (joined === null) return false;
    const { view, leave } = joined;
    try {
      await this.#catchUp(runId, view);
    } catch (error) {
      leave();
      throw error;
    }
    if (signal.aborted) {
      leave();
      return true;
    }
    view.store ??= runStore(view.run, this.#slices);
    const listening = view.store.watchers.listen((news, hasMore) =>
      news.kind === 'state' ? onState(news.run, hasMore) : onCorrupt(),
    );
    signal.addEventListener('abort', () => {
      listening.leave();
      leave();
    });
    onState(view.run);
    return true;
  }

  /** Notifies the watchers of a run that was found corrupt. */
  refuse({ data: { runId } }: RunCorrupt): void {
    this.#views.get(runId)?.store?.refused();
  }

  /** A run that is kept in memory from now on: one that has just been loaded may have left it before this goes on. */
  async #joined(runId: string): Promise<{ readonly view: View; readonly leave: () => void } | null> {
    for (;;) {
      const view = this.#views.get(runId) ?? (await this.#load(runId));
      if (view === null) return null;
      if (this.#views.get(runId) === view) return { view, leave: this.#join(runId, view) };
    }
  }

  /** Keeps a view in memory until it is left again. */
  #join(runId: string, view: View): () => void {
    view.watchers += 1;
    if (view.watchers === 1) this.#watched += 1;
    const leave = this.#onWatched();
    this.#foldUp(runId, view);
    return () => {
      leave();
      view.watchers -= 1;
      if (view.watchers === 0) this.#watched -= 1;
      this.#settle(runId, view);
    };
  }

  /** Takes all that is recorded by now, or some: the subscription may be behind, in the middle of an append, or quiet. */
  async #catchUp(runId: string, view: View, max?: number): Promise<void> {
    const range = { from: view.run.head.seq + 1, ...(max !== undefined && { max }) };
    for await (const event of this.#reader.events(runId, range)) this.#take(view, event);
  }

  #take(view: View, event: RunEvent): void {
    if (event.seq !== view.run.head.seq + 1) return;
    view.run = foldNext(view.run.runId, view.run, event);
    view.store?.recorded(view.run);
  }

  async #open(runId: string, event: RunEvent): Promise<View | null> {
    if (event.type !== 'RunRequested') return await this.#load(runId);
    const loading = this.#loading.get(runId);
    return loading === undefined ? this.#keep(runId, foldNext(runId, null, event)) : await loading;
  }

  #load(runId: string): Promise<View | null> {
    let loading = this.#loading.get(runId);
    if (loading === undefined) {
      loading = this.#reader
        .fold(runId)
        .then((run) => (run === null ? null : (this.#views.get(runId) ?? this.#keep(runId, run))))
        .finally(() => this.#loading.delete(runId));
      this.#loading.set(runId, loading);
    }
    return loading;
  }

  #keep(runId: string, run: RunState): View {
    const view = { run, store: null, watchers: 0, text: 0 };
    this.#views.set(runId, view);
    return view;
  }

  /** Evicts this view, when it is not needed in memory, or others beyond the bounds. */
  #settle(runId: string, view: View): void {
    if (view.watchers > 0 || this.#views.get(runId) !== view) return;
    const { run } = view;
    this.#drop(runId, view);
    if (isAtRest(run)) return;
    this.#views.set(runId, view);
    view.text = run.progress.inputTopic.length + (run.progress.shown.draft?.length ?? 0);
    this.#text += view.text;
    this.#evict();
  }

  #evict(): void {
    if (this.#mayHaveGaps) return;
    for (const [oldest, each] of this.#views) {
      if (!this.isOverBounds) return;
      if (each.watchers === 0 && !this.unfolded.has(oldest)) this.#drop(oldest, each);
    }
  }

  #drop(runId: string, view: View): void {
    this.#views.delete(runId);
    this.#text -= view.text;
  }
}

/** Whether an event tells all that is told of its run from then on. */
function isWhole({ type, data }: RunEvent): boolean {
  return type === 'RunCompleted' && data.usage !== undefined;
}
