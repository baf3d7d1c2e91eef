/**
 * The list of runs, kept true by the feed. Statuses follow from the events themselves; what those do not tell is read
 * again, rows in sight alone and a few a second, so that a storm of events costs little.
 */
import type { Signal } from '@preact/signals';
import { batch, signal } from '@preact/signals';
import type { CouncilClient, RunFilters } from '../../../client/client.js';
import type { FeedEvent } from '../../../client/feed.js';
import type { HistoryRecord } from '../../../generated/schemas.js';
import type { RunRow } from './run-row.js';
import { ROW_EVENTS, isOver, rowAfter, rowOf } from './run-row.js';

/** Runs that are asked for at a time. */
const PAGE = 100;
/** Pauses that are asked for at first; of others in sight each is asked by itself. */
const PAUSES = 200;
/** Rests between two looks at the first page, and between two runs that are read again, in milliseconds. */
const LOOK_MS = 1_000;
const READ_MS = 250;
/** Between two looks at what is listed and in sight, whatever the feed has told: nothing stays wrong for longer. */
const DOUBT_MS = 20_000;
/** Looks for a run that was told of: other instances list it within a second. */
const MAX_LOOKS = 3;

export type ListedRuns = Omit<RunFilters, 'signal' | 'limit'>;

export interface RunListDeps {
  readonly council: Pick<CouncilClient, 'runs' | 'run' | 'feed' | 'approvals'>;
  /** Calls back before the next picture is painted. */
  readonly onFrame: (act: () => void) => void;
  /** Calls back after a time. */
  readonly after: (delayMs: number, act: () => void) => void;
  /** Whether somebody sees the page. */
  readonly isSeen: () => boolean;
  /** Told why something could not be read. */
  readonly onFault: (error: unknown) => void;
}

/** How far a list has come: `more` runs are to be had, or it is read to its `end`. */
export type ListState = 'loading' | 'more' | 'end' | { readonly error: unknown };

/** Lines of a list that are in sight. */
export interface Sight {
  readonly from: number;
  readonly to: number;
  /** Whether the first line is among them, so that new ones may come before it. */
  readonly isTop: boolean;
}

type Pager = AsyncIterator<readonly HistoryRecord[]>;

export class RunList {
  /** In the order of the list; each by itself, so that an event draws one row anew. */
  readonly rows = signal<readonly Signal<RunRow>[]>([]);
  readonly state = signal<ListState>('loading');
  /** Of all pages; null: not known yet. */
  readonly total = signal<number | null>(null);
  /** Runs that have come meanwhile and are not shown, so that nothing moves under the reader. */
  readonly fresh = signal(0);
  /** Names of blueprints that the feed has told, by id. */
  readonly names = signal<ReadonlyMap<string, string>>(new Map());
  /** Why nothing changes by itself any more; null: it does. */
  readonly feedFault = signal<unknown>(null);

  readonly #deps: RunListDeps;
  readonly #over = new AbortController();
  #filters: ListedRuns = {};
  /** Of the list that is shown; what was asked for another one is let go. */
  #shown = new AbortController();
  #pager: Pager | null = null;
  #sight: Sight = { from: 0, to: PAGE, isTop: true };
  readonly #byId = new Map<string, Signal<RunRow>>();
  /** Rows as they are after events, until the next picture. */
  readonly #changed = new Map<string, RunRow>();
  /** Rows of which something is to be read again. */
  readonly #stale = new Set<string>();
  /** How often runs are looked for yet that are not in the list and may belong there. */
  #looksLeft = 0;
  readonly #look: () => void;
  readonly #readStale: () => void;

  constructor(deps: RunListDeps) {
    this.#deps = deps;
    this.#look = this.#paced(LOOK_MS, () => this.#lookAgain());
    this.#readStale = this.#paced(READ_MS, () => this.#readOne());
  }

  /** Follows the feed, from now on, until `stop`. */
  async follow(): Promise<void> {
    const { signal } = this.#over;
    // What is recorded between the reading of the list and the beginning of the feed is told by neither.
    this.#deps.after(LOOK_MS, () => {
      this.#doubt();
      this.#look();
      this.#doubtNowAndThen();
    });
    try {
      const feed = this.#deps.council.feed({ from: 'head', types: ROW_EVENTS, signal });
      for await (const event of feed) this.#take(event);
    } catch (error) {
      this.feedFault.value = error;
      this.#deps.onFault(error);
    }
  }

  #doubt(): void {
    for (const row of this.rows.peek()) if (!isOver(row.peek())) this.#stale.add(row.peek().id);
    this.#readStale();
  }

  #doubtNowAndThen(): void {
    this.#deps.after(DOUBT_MS, () => {
      if (this.#over.signal.aborted) return;
      if (this.#deps.isSeen()) {
        this.#doubt();
        this.#look();
      }
      this.#doubtNowAndThen();
    });
  }

  stop(): void {
    this.#over.abort();
    this.#shown.abort();
  }

  /** Shows another list, from its beginning. */
  show(filters: ListedRuns): void {
    this.#filters = filters;
    const pager = this.#begin();
    batch(() => {
      this.#clear();
      this.total.value = null;
    });
    void this.#count();
    void this.#readPage(pager);
  }

  /** Shows the same list anew, with what has come. */
  reload(): void {
    this.show(this.#filters);
  }

  /** Reads the next page, unless one is under way. */
  more(): void {
    if (this.state.value !== 'more' || this.#pager === null) return;
    this.state.value = 'loading';
    void this.#readPage(this.#pager);
  }

  /** Says what is looked at: only there is anything read again. */
  see(sight: Sight): void {
    this.#sight = sight;
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
    this.fresh.value = 0;
    this.#looksLeft = 0;
    [this.#byId, this.#changed, this.#stale].forEach((each) => each.clear());
  }

  async #count(): Promise<void> {
    const { signal } = this.#shown;
    try {
      const total = await this.#deps.council.runs.count({ ...this.#filters, signal });
      if (!signal.aborted) this.total.value = total;
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
    // An event may have told of its end while the page was on its way here, and the row was not known.
    for (const { value: row } of added) if (!isOver(row)) this.#stale.add(row.id);
    if (isUnknown && isFirst) void this.#readPauses();
    if (this.#stale.size > 0) this.#readStale();
  }

  /** The row of a run that was read: a new one, or the known one as it is now. */
  #row(record: HistoryRecord): Signal<RunRow> {
    const known = this.#byId.get(record.id);
    const row = known ?? signal(rowOf(record));
    const next = rowOf(record, row.value.waitingSince);
    this.#byId.set(record.id, row);
    // An event may have told of its end after this was read.
    if (!isOver(row.value) || isOver(next)) row.value = next;
    if (isSinceUnknown(next)) this.#stale.add(record.id);
    return row;
  }

  /** Since when runs wait, longest first. */
  async #readPauses(): Promise<void> {
    const { signal } = this.#shown;
    try {
      const pauses = await this.#deps.council.approvals.list({ limit: PAUSES, signal });
      if (signal.aborted) return;
      batch(() => pauses.forEach(({ run_id: id, waiting_since: since }) => this.#waits(id, since)));
    } catch (error) {
      if (!signal.aborted) this.#deps.onFault(error);
    }
  }

  #waits(id: string, waitingSince: string): void {
    const row = this.#byId.get(id);
    if (row === undefined || !isSinceUnknown(row.value)) return;
    row.value = { ...row.value, waitingSince };
    this.#stale.delete(id);
  }

  #take(event: FeedEvent): void {
    const { run_id: id } = event;
    if (event.type === 'RunRequested') this.#name(event.data);
    const row = this.#changed.get(id) ?? this.#byId.get(id)?.value;
    if (row === undefined) return this.#await(event);
    if (isOver(row)) return;
    if (this.#changed.size === 0) this.#deps.onFrame(() => this.#draw());
    this.#changed.set(id, rowAfter(row, event));
    this.#stale.add(id);
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

  /** A run that is not in the list may belong there: always when it is new, and else where its status or score decides. */
  #await({ type }: FeedEvent): void {
    const { status, q, minScore, maxScore, sort = '-created_at' } = this.#filters;
    const isByState =
      [status, q, minScore, maxScore].some((each) => each !== undefined) || !sort.endsWith('created_at');
    if (type !== 'RunRequested' && !(isByState && type !== 'NodeStarted')) return;
    this.#looksLeft = MAX_LOOKS;
    this.#look();
  }

  /** Looks at the first page as it is now. */
  async #lookAgain(): Promise<void> {
    const { signal } = this.#shown;
    if (this.state.value === 'loading') this.#look();
    if (this.state.value !== 'more' && this.state.value !== 'end') return;
    const pager = this.#pages();
    const [records] = await Promise.all([pageOf(pager), this.#count()]);
    if (signal.aborted) return;
    const known = records.filter(({ id }) => this.#byId.has(id));
    const newCount = records.length - known.length;
    batch(() => {
      known.forEach((record) => this.#row(record));
      if (newCount === 0) return;
      if (!this.#comesFirst()) this.fresh.value = newCount;
      else if (known.length > 0) this.#insert(records);
      else this.#replace(pager, records);
    });
    // Events may have told of the new ones while they were on their way here, and not known.
    if (newCount > 0) this.#look();
    this.#rest();
  }

  /** Whether new runs come before all others, in sight. */
  #comesFirst(): boolean {
    return this.#sight.isTop && (this.#filters.sort ?? '-created_at') === '-created_at';
  }

  /** What was looked for in vain is looked for again, a few times. */
  #rest(): void {
    this.#looksLeft -= 1;
    if (this.#looksLeft > 0) this.#look();
  }

  #insert(records: readonly HistoryRecord[]): void {
    const added = records.filter(({ id }) => !this.#byId.has(id)).map((record) => this.#row(record));
    this.rows.value = [...added, ...this.rows.value].sort((one, other) => newestFirst(one.peek(), other.peek()));
    this.fresh.value = 0;
    this.#readStale();
  }

  /** More have come than a page holds: the list begins anew with it. */
  #replace(pager: Pager, records: readonly HistoryRecord[]): void {
    this.#clear();
    this.#pager = pager;
    this.#append(records);
  }

  /** Reads the next row again that is in sight. */
  async #readOne(): Promise<void> {
    const { signal } = this.#shown;
    const { from, to } = this.#sight;
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
      if (pause?.state.paused_at) this.#waits(id, pause.state.paused_at);
      this.#stale.delete(id);
    }
    if (this.#stale.size > 0) this.#readStale();
  }

  /** Does something when it is wished for: at once after a rest, and never twice at a time. */
  #paced(restMs: number, act: () => Promise<void>): () => void {
    let isResting = false;
    let isWished = false;
    const go = (): void => {
      isResting = true;
      isWished = false;
      act()
        .catch((error: unknown) => {
          if (!this.#shown.signal.aborted) this.#deps.onFault(error);
        })
        .finally(() =>
          this.#deps.after(restMs, () => {
            isResting = false;
            if (isWished && !this.#over.signal.aborted) go();
          }),
        );
    };
    return () => {
      if (isResting) isWished = true;
      else go();
    };
  }
}

/** The next page; past the last one none is left. */
async function pageOf(pager: Pager): Promise<readonly HistoryRecord[]> {
  const page = await pager.next();
  return page.done === true ? [] : page.value;
}

function isSinceUnknown({ status, waitingSince }: RunRow): boolean {
  return status === 'paused' && waitingSince === null;
}

/** As the service sorts: ties by id. */
function newestFirst(one: RunRow, other: RunRow): number {
  const [a, b] = [one.createdAt ?? '', other.createdAt ?? ''];
  if (a !== b) return a < b ? 1 : -1;
  return one.id < other.id ? -1 : 1;
}
