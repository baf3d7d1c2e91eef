/**
 * The folded runs in memory, fed by the projector, read by sockets and the history. A watched run has a store, which
 * notifies its watchers. Paused and finished runs without watchers are evicted, and folded from the log on demand.
 */
import type { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { isAtRest } from '../run/state.js';
import type { RecordedLink } from '../run/stream.js';
import { assertRecordedFollows, foldNext } from '../run/stream.js';
import type { RunReader } from './run-reader.js';
import { createStore } from '@xstate/store';
import { Broadcast } from '../system/async/broadcast.js';

/**
 * Limits of the runs without a watcher. Above these, the least recently used are evicted, and folded again with their
 * next event.
 */
export interface UnwatchedBounds {
  readonly runs: number;
  /** Characters of topics and drafts. */
  readonly text: number;
}

/** More runs than two instances accept at a time, each with 10,000 pending and 1,000 active runs. */
const BOUNDS = { runs: 25_000, text: 200_000_000 } as const;

interface View {
  run: RunState;
  /**
   * Created when a watcher comes, because most runs never have one, and a store takes more memory than the folded run.
   */
  store: RunStore | null;
  watchers: number;
  /** Number of characters of its topic and draft, which count against the limit. */
  text: number;
}

export interface RunsInMemoryOptions {
  /** Default: enough for all runs under way. */
  readonly bounds?: UnwatchedBounds;
  /** Called before a run is shown: see run-reader.ts. */
  readonly assertReaches?: RunReader['assertReaches'];
}

export class RunsInMemory {
  readonly #reader: Pick<RunReader, 'fold' | 'events'>;
  readonly #assertReaches: RunReader['assertReaches'];
  readonly #bounds: UnwatchedBounds;
  readonly #views = new Map<string, View>();
  /** Views with a watcher, which do not count against the limits. */
  #watched = 0;
  #text = 0;
  readonly #loading = new Map<string, Promise<View | null>>();

  constructor(reader: Pick<RunReader, 'fold' | 'events'>, options: RunsInMemoryOptions = {}) {
    this.#reader = reader;
    this.#bounds = options.bounds ?? BOUNDS;
    this.#assertReaches = options.assertReaches ?? (async () => undefined);
  }

  /** Runs held in memory. */
  get size(): number {
    return this.#views.size;
  }

  /** Whether a run has a watcher. */
  isWatched(runId: string): boolean {
    return (this.#views.get(runId)?.watchers ?? 0) > 0;
  }

  /**
   * Folds one event of the log; skips events that are folded already.
   *
   * @param link given if the hash of the event must be verified
   * @returns the run after the event, or after later ones
   * @throws {RunCorrupt} the event is invalid; the view keeps its last valid state
   */
  async apply(runId: string, event: RunEvent, link: RecordedLink | null = null): Promise<RunState | null> {
    const view = this.#views.get(runId) ?? (await this.#open(runId, event));
    if (view === null) return null;
    const { head } = view.run;
    if (link !== null && event.seq === head.seq + 1) assertRecordedFollows(runId, head, link);
    this.#foldInto(view, event);
    this.#settle(runId, view);
    return view.run;
  }

  /** Revision of the last folded event of a run, or null if the run is not in memory. */
  headSeq(runId: string): number | null {
    return this.#views.get(runId)?.run.head.seq ?? null;
  }

  /**
   * Adopts the state of a run that other code has folded, and returns that or a later state. Returns null if the run
   * is watched or loading, because then each event must be applied.
   */
  adopt(runId: string, run: RunState): RunState | null {
    if (this.#loading.has(runId)) return null;
    const view = this.#views.get(runId) ?? this.#keep(runId, run);
    if (view.watchers > 0) return null;
    if (run.head.seq > view.run.head.seq) view.run = run;
    view.store = null;
    this.#settle(runId, view);
    return view.run;
  }

  /**
   * Follows a run until the signal: calls `onState` with the recorded state, then with the state after every later
   * event.
   *
   * @returns false if there is no such run
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
    view.store ??= runStore(view.run);
    const stopListening = view.store.watchers.listen((news) =>
      news.kind === 'state' ? onState(news.run) : onCorrupt(),
    );
    signal.addEventListener('abort', () => {
      stopListening();
      leave();
    });
    onState(view.run);
    return true;
  }

  /** Notifies the watchers of a run that was found corrupt. */
  onRunCorrupt({ data: { runId } }: RunCorrupt): void {
    this.#views.get(runId)?.store?.notifyCorrupt();
  }

  /** Loads a run and keeps it in memory. Loads again if the run was evicted meanwhile. */
  async #joined(runId: string): Promise<{ readonly view: View; readonly leave: () => void } | null> {
    for (;;) {
      const view = this.#views.get(runId) ?? (await this.#load(runId));
      if (view === null) return null;
      if (this.#views.get(runId) === view) return { view, leave: this.#join(runId, view) };
    }
  }

  /** Keeps a view in memory until the returned function is called. */
  #join(runId: string, view: View): () => void {
    view.watchers += 1;
    if (view.watchers === 1) this.#watched += 1;
    return () => {
      view.watchers -= 1;
      if (view.watchers === 0) this.#watched -= 1;
      this.#settle(runId, view);
    };
  }

  /** Folds all recorded events, because the subscription may be behind or in the middle of an append. */
  async #catchUp(runId: string, view: View): Promise<void> {
    const from = view.run.head.seq + 1;
    for await (const event of this.#reader.events(runId, { from })) this.#foldInto(view, event);
  }

  #foldInto(view: View, event: RunEvent): void {
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

  /** Evicts this view if its run is paused or has ended, and others above the limits. */
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
    for (const [oldest, each] of this.#views) {
      if (this.#views.size - this.#watched <= this.#bounds.runs && this.#text <= this.#bounds.text) return;
      if (each.watchers === 0) this.#drop(oldest, each);
    }
  }

  #drop(runId: string, view: View): void {
    this.#views.delete(runId);
    this.#text -= view.text;
  }
}

/** A watcher, whose functions must not throw. */
export interface Watcher {
  readonly onState: (run: RunState) => void;
  /** Called when the run is found corrupt, after which its state must not be shown. */
  readonly onCorrupt?: () => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/** A notification to the watchers of a run. */
type Notification = { readonly kind: 'state'; readonly run: RunState } | { readonly kind: 'corrupt' };

/** The store of a watched run, which notifies its watchers. */
export interface RunStore {
  recorded(run: RunState): void;
  /** The run was found corrupt. */
  notifyCorrupt(): void;
  readonly watchers: Broadcast<Notification>;
}

export function runStore(first: RunState): RunStore {
  const watchers = new Broadcast<Notification>();
  const store = createStore({
    context: { run: first },
    on: { recorded: (_, { run }: { run: RunState }) => ({ run }) },
  });
  store.subscribe(({ context: { run } }) => watchers.deliver({ kind: 'state', run }));
  return {
    recorded: (run) => store.send({ type: 'recorded', run }),
    notifyCorrupt: () => watchers.deliver({ kind: 'corrupt' }),
    watchers,
  };
}
