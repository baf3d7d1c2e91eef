/**
 * The persistent run history, and the lists of blueprints and documents, under one checkpoint. Rows change in memory
 * first, and a worker writes them later with their checkpoint (write-behind). After a crash the projector folds
 * unwritten rows from the log again.
 */
import type { System } from '../system/system.js';
import type { DocumentRecord } from '../documents/events.js';
import type { Position } from '../eventlog/port.js';
import type { DuePause } from '../run/runs/deadlines.js';
import type { UnfinishedRun } from '../run/state.js';
import { ViewsFull, ViewsLost } from './errors.js';
import type { BlueprintRow } from './views/blueprint-row.js';
import type { Erased, ErasureLeaf } from '../ledger/events.js';
import type { DocumentRow } from './views/document-table.js';
import type { LeafRow } from './views/leaf-table.js';
import type { OverviewQuery, OverviewRows } from './overview.js';
import type { RunCounts, RunFilter, RunListQuery } from './run-list.js';
import type { Page, RunSummary } from './run-summary.js';
import type { KeyedRun } from './views/run-table.js';
import type { ViewsClient } from './views/views-client.js';

/**
 * Longest wait of a change before it is written, in milliseconds. A run that changes several times meanwhile is
 * written once. After a crash the changes of this time are folded again.
 */
const WRITE_BEHIND_MS = 500;
/** Wait after a failed write, in milliseconds. */
const RETRY_MS = 1_000;
export interface HistoryDeps {
  readonly views: ViewsClient;
  readonly system: Pick<System, 'after'>;
  readonly onFault: (error: unknown) => void;
}

export class History {
  readonly #views: ViewsClient;
  readonly #system: Pick<System, 'after'>;
  readonly #onFault: (error: unknown) => void;
  /** The limits bound memory while storage is slow or fails. A blueprint may be as large as an append. */
  readonly #runs = new UnwrittenRows<RunSummary>(5_000);
  readonly #blueprints = new UnwrittenRows<BlueprintRow>(50);
  readonly #documents = new UnwrittenRows<DocumentRow>(1_000);
  readonly #leaves = new UnwrittenRows<LeafRow>(5_000);
  #checkpoint: Position | null;
  #written: Promise<void> = Promise.resolve();
  #cancelTimer: (() => void) | null = null;
  #isFailing = false;
  #isReported = false;

  constructor({ views, system, onFault }: HistoryDeps) {
    this.#views = views;
    this.#system = system;
    this.#onFault = onFault;
    this.#checkpoint = views.checkpoint;
  }

  /** Position up to which the rows are folded: at the start of the process from the file, then from the projector. */
  get checkpoint(): Position | null {
    return this.#checkpoint;
  }

  /** @param position up to which all rows were put, or null if the stored rows are lost and will all be put again */
  setCheckpoint(position: Position | null): void {
    this.#checkpoint = position;
  }

  /** Whether the last write succeeded. */
  get isWritable(): boolean {
    return !this.#isFailing;
  }

  /** Puts a run's newest summary. While the history is full, the caller flushes it before it puts another row. */
  put(summary: RunSummary): void {
    this.#put(this.#runs, summary);
  }

  /** Puts a blueprint's newest record, as `put` does. */
  putBlueprint(row: BlueprintRow): void {
    this.#put(this.#blueprints, row);
  }

  /** Puts a document's newest record, as `put` does. */
  putDocument(row: DocumentRow): void {
    this.#put(this.#documents, row);
  }

  /** Puts a leaf of the ledger, as `put` does. */
  putLeaf(row: LeafRow): void {
    this.#put(this.#leaves, row);
  }

  /** Whether too many rows are unwritten. */
  get isFull(): boolean {
    return this.#tables.some((table) => table.isFull);
  }

  get #tables() {
    return [this.#runs, this.#blueprints, this.#documents, this.#leaves] as const;
  }

  /** A run's row, or null if there is none or the stored rows are lost: then the caller reads the log. */
  async find(runId: string): Promise<RunSummary | null> {
    const unwritten = this.#runs.get(runId);
    if (unwritten !== null || !this.#views.isOpen) return unwritten;
    try {
      return await this.#views.find(runId);
    } catch (error) {
      if (error instanceof ViewsLost) return null;
      throw error;
    }
  }

  /** The newest summary of a run, written or not, or null if there is none. */
  async stored(runId: string): Promise<RunSummary | null> {
    return await this.#query((views) => views.find(runId));
  }

  /** Ids of runs whose retention has passed: see `RunTable.expired`. */
  async expired(days: number | null, now: string, max: number): Promise<readonly string[]> {
    return await this.#query((views) => views.expired(days, now, max));
  }

  /** Runs with those that their councils have started: see `RunTable.families`. */
  async families(ids: readonly string[]): Promise<readonly RunSummary[]> {
    return await this.#query((views) => views.families(ids));
  }

  /** By default newest first, ties by id ascending. */
  async list(query: RunListQuery): Promise<readonly RunSummary[]> {
    return await this.#query((views) => views.list(query));
  }

  /** Number of runs that pass a filter. */
  async count(filter: RunFilter): Promise<number> {
    return await this.#query((views) => views.count(filter));
  }

  /** Numbers of runs that pass a filter, of one moment. */
  async counts(filter: RunFilter): Promise<RunCounts> {
    return await this.#query((views) => views.counts(filter));
  }

  /** Counts of ended and waiting runs. */
  async overview(query: OverviewQuery): Promise<OverviewRows> {
    return await this.#query((views) => views.overview(query));
  }

  /** Ids of runs that have not ended and do not wait for a human, oldest first. */
  async unfinished(): Promise<readonly UnfinishedRun[]> {
    return await this.#query((views) => views.unfinished());
  }

  /** The earliest deadlines of pauses, at most `max`. */
  async deadlines(max: number): Promise<readonly DuePause[]> {
    return await this.#query((views) => views.deadlines(max));
  }

  /** The runs after a key that wait for a human, at most 1,000, in the order of their first events. */
  async paused(after: number): Promise<readonly KeyedRun[]> {
    return await this.#query((views) => views.paused(after));
  }

  /** Newest first, ties by id ascending. */
  async documents(page: Page): Promise<readonly DocumentRecord[]> {
    return await this.#query((views) => views.documents(page));
  }

  /** Whether any document is listed. */
  async hasDocuments(): Promise<boolean> {
    return (await this.documents({ limit: 1, offset: 0 })).length > 0;
  }

  /** The newest record of a document, written or not, or null if there is none. */
  async document(documentId: string): Promise<DocumentRecord | null> {
    return await this.#query((views) => views.document(documentId));
  }

  /** Zeroes what erased runs have left in the stored rows. The caller has waited until their leaves are folded. */
  async zeroErased(): Promise<void> {
    await this.#query((views) => views.zeroErased());
  }

  /** Ids of the first runs that have ended and have no leaf: see `LeafTable.endedWithoutLeaf`. */
  async endedWithoutLeaf(max: number): Promise<readonly string[]> {
    return await this.#query((views) => views.endedWithoutLeaf(max));
  }

  /** The number of a run's leaf in the ledger, or null if it has none yet or the run is erased. */
  async leafOf(runId: string): Promise<number | null> {
    return await this.#query((views) => views.leafOf(runId));
  }

  /** The erasure of a run or a document, or null if it is not erased. */
  async erasedAs(what: ErasureLeaf['what'], id: string): Promise<Erased | null> {
    return await this.#query((views) => views.erasedAs(what, id));
  }

  /** Newest update first, ties by id ascending. */
  async blueprintIds(page: Page): Promise<readonly string[]> {
    return await this.#query((views) => views.blueprintIds(page));
  }

  /** The stored records as JSON text, null for each that does not exist; only the first few if they are large. */
  async blueprintRecords(ids: readonly string[]): Promise<readonly (string | null)[]> {
    return await this.#query((views) => views.blueprintRecords(ids));
  }

  /** Replaces the stored row of a run by its fold, unless the row has changed since it was seen. */
  async replace(seen: RunSummary | null, fold: RunSummary): Promise<void> {
    const stored = await this.stored(fold.id);
    if (this.#runs.get(fold.id) !== null || JSON.stringify(stored) !== JSON.stringify(seen)) return;
    this.put(fold);
    await this.flush();
  }

  /** Replaces the stored row of a document by its fold, unless the row has changed since it was seen. */
  async replaceDocument(seen: DocumentRecord | null, row: DocumentRow): Promise<void> {
    const stored = await this.document(row.id);
    if (this.#documents.get(row.id) !== null || JSON.stringify(stored) !== JSON.stringify(seen)) return;
    this.putDocument(row);
    await this.flush();
  }

  /** Replaces the stored row of a blueprint by its fold, unless the row has changed since it was seen. */
  async replaceBlueprint(seen: string, row: BlueprintRow): Promise<void> {
    const [stored = null] = await this.blueprintRecords([row.id]);
    if (this.#blueprints.get(row.id) !== null || stored !== seen) return;
    this.putBlueprint(row);
    await this.flush();
  }

  /** Writes all changed rows. */
  flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#written = this.#written.catch(() => undefined).then(() => this.#write());
    return this.#written;
  }

  /** Queries the views after all rows that were put are in them. On a full disk these rows are in memory only. */
  async #query<T>(query: (views: ViewsClient) => Promise<T>): Promise<T> {
    try {
      await this.flush();
    } catch (error) {
      if (!(error instanceof ViewsFull)) throw error;
      // `flush` has cancelled the timer of the next attempt.
      this.#startTimer(RETRY_MS);
    }
    return await query(this.#views);
  }

  #put<Row extends { readonly id: string }>(table: UnwrittenRows<Row>, row: Row): void {
    table.put(row);
    this.#startTimer(this.#isFailing ? RETRY_MS : WRITE_BEHIND_MS);
  }

  async #write(): Promise<void> {
    const [runs, blueprints, documents] = [this.#runs.begin(), this.#blueprints.begin(), this.#documents.begin()];
    const leaves = this.#leaves.begin();
    if (runs.length + blueprints.length + documents.length + leaves.length === 0) return;
    let isWritten = false;
    try {
      await this.#views.write({ runs, blueprints, documents, leaves }, this.#checkpoint);
      isWritten = true;
      this.#isReported = false;
    } finally {
      this.#isFailing = !isWritten;
      for (const table of this.#tables) table.end({ isWritten });
    }
  }

  /** Starts a timer that writes, unless one is running. */
  #startTimer(delayMs: number): void {
    this.#cancelTimer ??= this.#system.after(delayMs, () => {
      this.flush().catch((error: unknown) => {
        // A failure is reported once, but not for repeated attempts.
        if (!this.#isReported) this.#onFault(error);
        this.#isReported = true;
        this.#startTimer(RETRY_MS);
      });
    });
  }
}

/** The changed rows of one table that are not written yet: the newest row of each id. */
export class UnwrittenRows<Row extends { readonly id: string }> {
  readonly #max: number;
  #changed = new Map<string, Row>();
  #writing: ReadonlyMap<string, Row> = new Map();

  /** @param max changed rows at which the table is full */
  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#changed.size >= this.#max;
  }

  put(row: Row): void {
    // Rows are written in the order of their last changes.
    this.#changed.delete(row.id);
    this.#changed.set(row.id, row);
  }

  get(id: string): Row | null {
    return this.#changed.get(id) ?? this.#writing.get(id) ?? null;
  }

  /** The rows to write now. They can be read here until `end`. */
  begin(): readonly Row[] {
    this.#writing = this.#changed;
    this.#changed = new Map();
    return [...this.#writing.values()];
  }

  /** @param isWritten false keeps the rows for the next write */
  end({ isWritten }: { readonly isWritten: boolean }): void {
    if (!isWritten) this.#changed = new Map([...this.#writing, ...this.#changed]);
    this.#writing = new Map();
  }
}
