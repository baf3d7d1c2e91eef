/**
 * The list of runs, updated by the feed. An event sets the status of its row; other fields are read again, only for
 * visible rows and a few per second, so that many events cost little.
 */
import type { Signal } from '@preact/signals';
import { batch, computed, signal } from '@preact/signals';
import type { CouncilClient, RunFilters } from '../../../client/client.js';
import type { FeedEvent } from '../../../client/feed.js';
import type { HistoryRecord, RunCounts } from '../../../generated/schemas.js';
import type { CountFilter } from '../../record/outcome.js';
import { countIn } from '../../record/outcome.js';
import type { RunRow } from './run-row.js';
import { ROW_EVENTS, isOver, rowAfter, rowOf } from './run-row.js';

/** Page size. */
const PAGE = 100;
/** Number of pauses read with the first page; other pauses are read one by one. */
const PAUSES = 200;
/** Shortest time between two checks for new runs, and between two rows read again, in milliseconds. */
const CHECK_NEW_MS = 1_000;
const READ_MS = 250;
/** Time after which visible rows are read again even without an event, in milliseconds. */
const REVALIDATE_MS = 20_000;
/** Number of checks after an event of an unlisted run: other instances list it within a second. */
const MAX_CHECKS = 3;

export type ListedRuns = Omit<RunFilters, 'signal' | 'limit'>;

export interface RunListDeps {
  readonly council: Pick<CouncilClient, 'runs' | 'run' | 'feed' | 'approvals'>;
  /** Calls `act` before the next paint. */
  readonly onFrame: (act: () => void) => void;
  /** Calls `act` once, later. */
  readonly after: (delayMs: number, act: () => void) => void;

  readonly isPageVisible: () => boolean;
  /** Gets the error of a failed request. */
  readonly onFault: (error: unknown) => void;
}

/** `more`: there are more pages; `end`: all pages are loaded. */
export type ListState = 'loading' | 'more' | 'end' | { readonly error: unknown };

/** The visible rows. */
export interface VisibleRows {
  readonly from: number;
  readonly to: number;
  /** Whether the first row is visible, so that new runs may appear above it. */
  readonly isTop: boolean;
}

type Pager = AsyncIterator<readonly HistoryRecord[]>;

export class RunList {
  /** In the order of the list; a signal each, so that an event renders only its row. */
  readonly rows = signal<readonly Signal<RunRow>[]>([]);
  readonly state = signal<ListState>('loading');
  /** Numbers of runs with the filters but those of the status and the outcome, or null before the answer. */
  readonly counts = signal<RunCounts | null>(null);
  /** Number of runs on all pages, or null before the answer. */
  readonly total = computed(() => countIn(this.counts.value, this.#part.value));
  /** Number of new runs that are not shown, so that rows do not move while the user reads. */
  readonly newCount = signal(0);
  /** Names of blueprints from the feed, by id. */
  readonly names = signal<ReadonlyMap<string, string>>(new Map());
  /** Why the feed has ended, or null while it is open. */
  readonly feedFault = signal<unknown>(null);

  readonly #deps: RunListDeps;
  readonly #stopped = new AbortController();
  #filters: ListedRuns = {};
  readonly #part = signal<CountFilter>({});
  /** Aborts the requests of the current list. */
  #shown = new AbortController();
  #pager: Pager | null = null;
  #visible: VisibleRows = { from: 0, to: PAGE, isTop: true };
  readonly #byId = new Map<string, Signal<RunRow>>();
  /** Rows changed by events, until the next paint. */
  readonly #changed = new Map<string, RunRow>();
  /** Rows to read again. */
  readonly #stale = new Set<string>();
  /** Remaining checks for unlisted runs. */
  #checksLeft = 0;
  readonly #checkSoon: () => void;
  readonly #readStale: () => void;

  constructor(deps: RunListDeps) {
    this.#deps = deps;
    this.#checkSoon = this.#throttled(CHECK_NEW_MS, () => this.#checkForNew());
    this.#readStale = this.#throttled(READ_MS, () => this.#readOne());
  }

  /** Follows the feed until `stop`. */
  async follow(): Promise<void> {
    const { signal } = this.#stopped;
    // Events between reading the list and the start of the feed are in neither.
    this.#deps.after(CHECK_NEW_MS, () => {
      this.#revalidate();
      this.#checkSoon();
      this.#revalidatePeriodically();
    });
    try {
      const feed = this.#deps.council.feed({ from: 'head', types: ROW_EVENTS, signal });
      for await (const event of feed) this.#onEvent(event);
    } catch (error) {
      this.feedFault.value = error;
      this.#deps.onFault(error);
    }
  }

  #revalidate(): void {
    for (const row of this.rows.peek()) if (!isOver(row.peek())) this.#stale.add(row.peek().id);
    this.#readStale();
  }

  #revalidatePeriodically(): void {
    this.#deps.after(REVALIDATE_MS, () => {
      if (this.#stopped.signal.aborted) return;
      if (this.#deps.isPageVisible()) {
        this.#revalidate();
        this.#checkSoon();
      }
      this.#revalidatePeriodically();
    });
  }

  stop(): void {
    this.#stopped.abort();
    this.#shown.abort();
  }

  /** Shows another list. */
  show(filters: ListedRuns): void {
    this.#filters = filters;
    const pager = this.#begin();
    batch(() => {
      this.#clear();
      this.#part.value = filters;
      this.counts.value = null;
    });
    void this.#count();
    void this.#readPage(pager);
  }

  /** Loads the list again. */
  reload(): void {
    this.show(this.#filters);
  }

  /** Loads the next page, unless a page is loading. */
  more(): void {
    if (this.state.value !== 'more' || this.#pager === null) return;
    this.state.value = 'loading';
    void this.#readPage(this.#pager);
  }

  /** Sets the visible rows: only these are read again. */
  setVisibleRows(sight: VisibleRows): void {
    this.#visible = sight;
    if (this.#stale.size > 0) this.#readStale();
  }

  #begin(): Pager {
    this.#shown.abort();
    this.#shown = new AbortController();
    this.#pager = this.#pages();
    return this.#pager;
  }

  #pages(): Pager {
    const { signal } = this.#shown;
    return this.#deps.council.runs
      .list({ ...this.#filters, limit: PAGE, signal })
      .pages()
      [Symbol.asyncIterator]();
  }

  #clear(): void {
    this.rows.value = [];
    this.state.value = 'loading';
    this.newCount.value = 0;
    this.#checksLeft = 0;
    [this.#byId, this.#changed, this.#stale].forEach((each) => each.clear());
  }

  async #count(): Promise<void> {
    const { signal } = this.#shown;
    try {
      const { status: _, outcome: __, sort: ___, ...filters } = this.#filters;
      const counts = await this.#deps.council.runs.counts({ ...filters, signal });
      if (!signal.aborted) this.counts.value = counts;
    } catch (error) {
      if (!signal.aborted) this.#deps.onFault(error);
    }
  }

  async #readPage(pager: Pager): Promise<void> {
    try {
      const records = await pageOf(pager);
      if (pager === this.#pager) this.#append(records);
    } catch (error) {
      if (pager !== this.#pager) return;
      this.state.value = { error };
      this.#deps.onFault(error);
    }
  }

  #append(records: readonly HistoryRecord[]): void {
    const isFirst = this.rows.value.length === 0;
    const added = records.filter(({ id }) => !this.#byId.has(id)).map((record) => this.#row(record));
    batch(() => {
      this.rows.value = [...this.rows.value, ...added];
      this.state.value = records.length < PAGE ? 'end' : 'more';
    });
    const isUnknown = added.some(({ value }) => isSinceUnknown(value));
    // An event of the run's end may have arrived before the row.
    for (const { value: row } of added) if (!isOver(row)) this.#stale.add(row.id);
    if (isUnknown && isFirst) void this.#readPauses();
    if (this.#stale.size > 0) this.#readStale();
  }

  /** Adds or updates the row of a run. */
  #row(record: HistoryRecord): Signal<RunRow> {
    const known = this.#byId.get(record.id);
    const row = known ?? signal(rowOf(record));
    const next = rowOf(record, row.value.waitingSince);
    this.#byId.set(record.id, row);
    // An event of the run's end may be newer than the record.
    if (!isOver(row.value) || isOver(next)) row.value = next;
    if (isSinceUnknown(next)) this.#stale.add(record.id);
    return row;
  }

  /** Reads since when paused runs wait. */
  async #readPauses(): Promise<void> {
    const { signal } = this.#shown;
    try {
      const pauses = await this.#deps.council.approvals.list({ limit: PAUSES, signal });
      if (signal.aborted) return;
      batch(() => pauses.forEach(({ run_id: id, waiting_since: since }) => this.#setWaitingSince(id, since)));
    } catch (error) {
      if (!signal.aborted) this.#deps.onFault(error);
    }
  }

  #setWaitingSince(id: string, waitingSince: string): void {
    const row = this.#byId.get(id);
    if (row === undefined || !isSinceUnknown(row.value)) return;
    row.value = { ...row.value, waitingSince };
    this.#stale.delete(id);
  }

  #onEvent(event: FeedEvent): void {
    const { run_id: id } = event;
    if (event.type === 'RunRequested') this.#name(event.data);
    const row = this.#changed.get(id) ?? this.#byId.get(id)?.value;
    if (row === undefined) return this.#mayList(event) ? this.#onUnlistedRun(event) : undefined;
    if (isOver(row)) return;
    if (this.#changed.size === 0) this.#deps.onFrame(() => this.#draw());
    this.#changed.set(id, rowAfter(row, event));
    this.#stale.add(id);
  }

  /** Runs that councils have started are in the list if the filters ask for them. */
  #mayList({ parent_run: parent }: FeedEvent): boolean {
    const { children = false, parentRun } = this.#filters;
    return parentRun === undefined ? parent === undefined || children : parent?.run_id === parentRun;
  }

  #draw(): void {
    batch(() => {
      for (const [id, row] of this.#changed) {
        const shown = this.#byId.get(id);
        if (shown !== undefined) shown.value = row;
      }
    });
    this.#changed.clear();
    this.#readStale();
  }

  #name({ blueprintId: id, blueprintName: name }: { blueprintId: string | null; blueprintName: string | null }): void {
    if (id === null || name === null || this.names.value.get(id) === name) return;
    this.names.value = new Map(this.names.value).set(id, name);
  }

  /** Checks whether an unlisted run belongs in the list: if it is new, or if the filters depend on its state. */
  #onUnlistedRun({ type }: FeedEvent): void {
    const { status, outcome, q, minScore, maxScore, sort = '-created_at' } = this.#filters;
    const isByState =
      [status, outcome, q, minScore, maxScore].some((each) => each !== undefined) || !sort.endsWith('created_at');
    if (type !== 'RunRequested' && !(isByState && type !== 'NodeStarted')) return;
    this.#checksLeft = MAX_CHECKS;
    this.#checkSoon();
  }

  /** Reads the first page and adds new runs. */
  async #checkForNew(): Promise<void> {
    const { signal } = this.#shown;
    if (this.state.value === 'loading') this.#checkSoon();
    if (this.state.value !== 'more' && this.state.value !== 'end') return;
    const pager = this.#pages();
    const [records] = await Promise.all([pageOf(pager), this.#count()]);
    if (signal.aborted) return;
    const known = records.filter(({ id }) => this.#byId.has(id));
    const newCount = records.length - known.length;
    batch(() => {
      known.forEach((record) => this.#row(record));
      if (newCount === 0) return;
      if (!this.#comesFirst()) this.newCount.value = newCount;
      else if (known.length > 0) this.#insert(records);
      else this.#replace(pager, records);
    });
    // Events of the new runs may have arrived before their rows.
    if (newCount > 0) this.#checkSoon();
    this.#retryCheck();
  }

  /** Whether new runs belong above the visible rows. */
  #comesFirst(): boolean {
    return this.#visible.isTop && (this.#filters.sort ?? '-created_at') === '-created_at';
  }

  /** Checks again, a limited number of times. */
  #retryCheck(): void {
    this.#checksLeft -= 1;
    if (this.#checksLeft > 0) this.#checkSoon();
  }

  #insert(records: readonly HistoryRecord[]): void {
    const added = records.filter(({ id }) => !this.#byId.has(id)).map((record) => this.#row(record));
    this.rows.value = [...added, ...this.rows.value].sort((one, other) => newestFirst(one.peek(), other.peek()));
    this.newCount.value = 0;
    this.#readStale();
  }

  /** Replaces the list if there are more new runs than a page holds. */
  #replace(pager: Pager, records: readonly HistoryRecord[]): void {
    this.#clear();
    this.#pager = pager;
    this.#append(records);
  }

  /** Reads the next visible stale row. */
  async #readOne(): Promise<void> {
    const { signal } = this.#shown;
    const { from, to } = this.#visible;
    const seen = new Set(this.rows.value.slice(from, to).map((row) => row.peek().id));
    const id = [...this.#stale].find((each) => seen.has(each));
    if (id === undefined) return;
    this.#stale.delete(id);
    const record = await this.#deps.council.runs.get(id, { signal });
    const row = this.#byId.get(id);
    if (signal.aborted || row === undefined) return;
    this.#row(record);
    if (isSinceUnknown(row.value)) {
      const pause = await this.#deps.council.run(id).pause({ signal });
      if (pause?.state.paused_at) this.#setWaitingSince(id, pause.state.paused_at);
      this.#stale.delete(id);
    }
    if (this.#stale.size > 0) this.#readStale();
  }

  /** Limits calls of `act`: one at a time, with a rest between two. */
  #throttled(restMs: number, act: () => Promise<void>): () => void {
    let isResting = false;
    let isRequested = false;
    const go = (): void => {
      isResting = true;
      isRequested = false;
      act()
        .catch((error: unknown) => {
          if (!this.#shown.signal.aborted) this.#deps.onFault(error);
        })
        .finally(() =>
          this.#deps.after(restMs, () => {
            isResting = false;
            if (isRequested && !this.#stopped.signal.aborted) go();
          }),
        );
    };
    return () => {
      if (isResting) isRequested = true;
      else go();
    };
  }
}

/** The next page, empty after the last. */
async function pageOf(pager: Pager): Promise<readonly HistoryRecord[]> {
  const page = await pager.next();
  return page.done === true ? [] : page.value;
}

function isSinceUnknown({ status, waitingSince }: RunRow): boolean {
  return status === 'paused' && waitingSince === null;
}

/** Sorts as the service: ties by id. */
function newestFirst(one: RunRow, other: RunRow): number {
  const [a, b] = [one.createdAt ?? '', other.createdAt ?? ''];
  if (a !== b) return a < b ? 1 : -1;
  return one.id < other.id ? -1 : 1;
}
