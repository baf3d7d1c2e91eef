/**
 * The persistent run history, with the lists of blueprints and documents beside it under the same checkpoint. Rows
 * change in memory first and are written later (write-behind), with their checkpoint, by a worker; after a crash
 * unwritten rows are folded from the log again.
 */
import type { System } from '../system/system.js';
import type { DocumentRecord } from '../documents/events.js';
import type { Position } from '../eventlog/port.js';
import type { DuePause } from '../run/live/deadlines.js';
import type { UnfinishedRun } from '../run/state.js';
import { ViewsFull, ViewsLost } from './errors.js';
import type { BlueprintRow } from './views/blueprint-row.js';
import type { DocumentRow } from './views/document-table.js';
import type { RunFilter, RunListQuery } from './run-list.js';
import type { Page, RunSummary } from './run-summary.js';
import type { KeyedRun } from './views/run-table.js';
import type { ViewsClient } from './views/views-client.js';

/** Longest a change waits to be written, in milliseconds. */
const WRITE_BEHIND_MS = 100;
/**
 * Longest a change waits to be written while history is folded, in milliseconds. Most runs change several times in that
 * time, and only the last change is written. After a crash this much is folded again.
 */
const FOLDED_BEHIND_MS = 5_000;
/** Changed rows at which they are written without waiting longer. */
const MANY_CHANGED = 500;
/** Changed rows at which the projector waits for the next write: storage is slow, or fails. */
const MAX_CHANGED = 5_000;
/** Wait after a write that failed, in milliseconds. */
const RETRY_MS = 1_000;
/** Changed blueprints at which the projector waits: each may be as large as an append. */
const MAX_CHANGED_BLUEPRINTS = 50;
/** Changed documents at which the projector waits: their rows are small. */
const MAX_CHANGED_DOCUMENTS = 1_000;

export interface HistoryDeps {
  readonly views: ViewsClient;
  readonly system: Pick<System, 'after'>;
  readonly onFault: (error: unknown) => void;
}

/** The origin of a summary. */
interface Origin {
  /** Whether it is folded from history, where more events of the run soon follow. */
  readonly isHistory: boolean;
}

const LIVE: Origin = { isHistory: false };

export class History {
  readonly #views: ViewsClient;
  readonly #system: Pick<System, 'after'>;
  readonly #onFault: (error: unknown) => void;
  #changed = new Map<string, RunSummary>();
  #writing: ReadonlyMap<string, RunSummary> = new Map();
  #changedBlueprints = new Map<string, BlueprintRow>();
  #writingBlueprints: ReadonlyMap<string, BlueprintRow> = new Map();
  #changedDocuments = new Map<string, DocumentRow>();
  #writingDocuments: ReadonlyMap<string, DocumentRow> = new Map();
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

  /** Position up to which the stored rows were folded when this process started, then how far it has come. */
  get checkpoint(): Position | null {
    return this.#checkpoint;
  }

  /** Whether the last write went through. */
  get isWritable(): boolean {
    return !this.#isFailing;
  }

  /** Takes a run's newest summary; waits when too many are still to be written. */
  async put(summary: RunSummary, origin: Origin = LIVE): Promise<void> {
    this.note(summary, origin);
    if (!this.hasRoom) await this.flush();
  }

  /** Whether a summary may be noted without waiting. */
  get hasRoom(): boolean {
    return this.#changed.size < MAX_CHANGED;
  }

  /** Takes a run's newest summary; the caller has checked `hasRoom`. */
  note(summary: RunSummary, { isHistory }: Origin = LIVE): void {
    this.#changed.set(summary.id, summary);
    if (this.#isFailing) this.#flushSoon(RETRY_MS);
    else if (isHistory) this.#flushSoon(FOLDED_BEHIND_MS);
    else this.#flushSoon(this.#changed.size === MANY_CHANGED ? 0 : WRITE_BEHIND_MS);
  }

  /** Takes a blueprint's newest record; waits when too many are still to be written. */
  async putBlueprint(row: BlueprintRow): Promise<void> {
    this.#changedBlueprints.set(row.id, row);
    if (this.#changedBlueprints.size >= MAX_CHANGED_BLUEPRINTS) await this.flush();
    else this.#flushSoon(WRITE_BEHIND_MS);
  }

  /** Takes a document's newest record; waits when too many are still to be written. */
  async putDocument(row: DocumentRow): Promise<void> {
    this.#changedDocuments.set(row.id, row);
    if (this.#changedDocuments.size >= MAX_CHANGED_DOCUMENTS) await this.flush();
    else this.#flushSoon(WRITE_BEHIND_MS);
  }

  /** Newest first, ties by id ascending. */
  async documents(page: Page): Promise<readonly DocumentRecord[]> {
    await this.#show();
    return await this.#views.documents(page);
  }

  /** Whether any is listed. */
  async hasDocuments(): Promise<boolean> {
    await this.#show();
    return (await this.#views.documents({ limit: 1, offset: 0 })).length > 0;
  }

  /** A document as it has been put; null when there is none. */
  async document(documentId: string): Promise<DocumentRecord | null> {
    if (this.#changedDocuments.size > 0) await this.#show();
    await this.#written.catch(() => undefined);
    return await this.#views.document(documentId);
  }

  /** Replaces the stored row of a document by its fold, unless the row has changed since it was seen. */
  async replaceDocument(seen: DocumentRecord | null, row: DocumentRow): Promise<void> {
    const stored = await this.document(row.id);
    const isOnItsWay = this.#changedDocuments.has(row.id) || this.#writingDocuments.has(row.id);
    if (isOnItsWay || JSON.stringify(stored) !== JSON.stringify(seen)) return;
    await this.putDocument(row);
    await this.flush();
  }

  /** Newest update first, ties by id ascending. */
  async blueprintIds(page: Page): Promise<readonly string[]> {
    await this.#show();
    return await this.#views.blueprintIds(page);
  }

  /** The stored records as JSON text, null where there is none; of the first of them alone when they are large. */
  async blueprintRecords(ids: readonly string[]): Promise<readonly (string | null)[]> {
    if (this.#changedBlueprints.size > 0) await this.#show();
    await this.#written.catch(() => undefined);
    return await this.#views.blueprintRecords(ids);
  }

  /** Replaces the stored row of a blueprint by its fold, unless the row has changed since it was seen. */
  async replaceBlueprint(seen: string, row: BlueprintRow): Promise<void> {
    await this.flush();
    const [stored = null] = await this.#views.blueprintRecords([row.id]);
    const isOnItsWay = this.#changedBlueprints.has(row.id) || this.#writingBlueprints.has(row.id);
    if (isOnItsWay || stored !== seen) return;
    await this.putBlueprint(row);
    await this.flush();
  }

  /** Everything up to this position has been put. */
  reached(position: Position): void {
    this.#checkpoint = position;
  }

  /** The stored rows are lost: everything will be put again, from the first event on. */
  lost(): void {
    this.#checkpoint = null;
  }

  /** A run's row, or null if there is none or the stored rows are lost: then the caller reads the log. */
  async find(runId: string): Promise<RunSummary | null> {
    const noted = this.#changed.get(runId) ?? this.#writing.get(runId);
    if (noted !== undefined || !this.#views.isOpen) return noted ?? null;
    try {
      return await this.#views.find(runId);
    } catch (error) {
      if (error instanceof ViewsLost) return null;
      throw error;
    }
  }

  /** A run as it is stored, with everything that has been put, or null if there is none. */
  async stored(runId: string): Promise<RunSummary | null> {
    await this.#show();
    return await this.#views.find(runId);
  }

  /** By default newest first, ties by id ascending. */
  async list(query: RunListQuery): Promise<readonly RunSummary[]> {
    await this.#show();
    return await this.#views.list(query);
  }

  /** How many runs there are. */
  async count(filter: RunFilter): Promise<number> {
    await this.#show();
    return await this.#views.count(filter);
  }

  /** Ids of runs that have not ended and do not wait for a human, oldest first. */
  async unfinished(): Promise<readonly UnfinishedRun[]> {
    await this.#show();
    return await this.#views.unfinished();
  }

  /** The earliest deadlines of pauses, at most `max`. */
  async deadlines(max: number): Promise<readonly DuePause[]> {
    await this.#show();
    return await this.#views.deadlines(max);
  }

  /** The runs after a key that wait for a human, at most 1,000, in the order of their first events. */
  async paused(after: number): Promise<readonly KeyedRun[]> {
    await this.#show();
    return await this.#views.paused(after);
  }

  /** Replaces the stored row of a run by its fold, unless the row has changed since it was seen. */
  async replace(seen: RunSummary | null, fold: RunSummary): Promise<void> {
    const stored = await this.stored(fold.id);
    const isOnItsWay = this.#changed.has(fold.id) || this.#writing.has(fold.id);
    if (isOnItsWay || JSON.stringify(stored) !== JSON.stringify(seen)) return;
    this.note(fold);
    await this.flush();
  }

  /** Writes what has changed so far. */
  flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#written = this.#written.catch(() => undefined).then(() => this.#write());
    return this.#written;
  }

  /** The same for a reader: where there is no room, what has changed is shown without being stored. */
  async #show(): Promise<void> {
    try {
      await this.flush();
    } catch (error) {
      if (!(error instanceof ViewsFull)) throw error;
      // The timer that would have tried again was ended by this try.
      this.#flushSoon(RETRY_MS);
    }
  }

  async #write(): Promise<void> {
    const [blueprints, documents] = [this.#changedBlueprints, this.#changedDocuments];
    if (this.#changed.size + blueprints.size + documents.size === 0) return;
    this.#writing = this.#changed;
    this.#writingBlueprints = blueprints;
    this.#writingDocuments = documents;
    this.#changed = new Map();
    this.#changedBlueprints = new Map();
    this.#changedDocuments = new Map();
    const runs = [...this.#writing.values()];
    const rows = { runs, blueprints: [...blueprints.values()], documents: [...documents.values()] };
    try {
      await this.#views.write(rows, this.#checkpoint);
      this.#isFailing = false;
      this.#isReported = false;
    } catch (error) {
      this.#isFailing = true;
      this.#changed = new Map([...this.#writing, ...this.#changed]);
      this.#changedBlueprints = new Map([...blueprints, ...this.#changedBlueprints]);
      this.#changedDocuments = new Map([...documents, ...this.#changedDocuments]);
      throw error;
    } finally {
      this.#writing = new Map();
      this.#writingBlueprints = new Map();
      this.#writingDocuments = new Map();
    }
  }

  #flushSoon(delayMs: number): void {
    if (this.#cancelTimer !== null && delayMs > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#system.after(delayMs, () => {
      this.flush().catch((error: unknown) => {
        // A failure is reported once, however often it is tried again.
        if (!this.#isReported) this.#onFault(error);
        this.#isReported = true;
        this.#flushSoon(RETRY_MS);
      });
    });
  }
}
