/**
 * The rows of the stored read models. Rows and the checkpoint they were folded to are written in one transaction. Runs
 * inside the views worker.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DocumentRecord } from '../../documents/events.js';
import type { BlueprintRow } from './blueprint-row.js';
import type { DuePause } from '../../run/live/deadlines.js';
import type { UnfinishedRun } from '../../run/state.js';
import type { KeyedRun } from './run-table.js';
import type { Corruption } from '../corrupt-runs.js';
import type { DocumentRow } from './document-table.js';
import { documentTable } from './document-table.js';
import type { RunFilter, RunListQuery } from '../run-list.js';
import type { Page, RunSummary } from '../run-summary.js';
import { runTable } from './run-table.js';
import { checksumOf, isSound } from './row-checksum.js';
import type { Stored } from './stored-row.js';
import { fieldOf } from '../../system/untrusted.js';
import { parsed, textOf } from './stored-row.js';
import { metaIn } from './views-file.js';
import { transactions } from './views-transactions.js';

/** Size in UTF-16 units at which a chunk of records ends; the last one may be as large as an append. */
const CHUNK_CHARS = 512 * 1024;

/** Rows that have changed. */
export interface ViewsRows {
  readonly runs: readonly RunSummary[];
  readonly blueprints: readonly BlueprintRow[];
  readonly documents: readonly DocumentRow[];
}

export interface ViewsStore {
  /** Position the rows were folded to; null when there are none yet, or none usable. */
  readonly checkpoint: string | null;
  /** @throws {Error} `VIEWS_FULL`: they are shown until the next write, and are not stored */
  write(rows: ViewsRows, checkpoint: string | null): void;
  /** Null: there is none. */
  find(id: string): Stored<RunSummary> | null;
  list(query: RunListQuery): readonly Stored<RunSummary>[];
  /** How many runs there are. */
  count(filter: RunFilter): number;
  unfinished(): readonly UnfinishedRun[];
  /** The next of the runs that wait for a human after a key, in the order of keys: at most 1,000. */
  paused(after: number): readonly KeyedRun[];
  /** The earliest deadlines of pauses. */
  deadlines(max: number): readonly DuePause[];
  /** Newest update first, ties by id ascending. */
  blueprintIds(page: Page): readonly string[];
  /** Their records as JSON text, null where there is none: of the first ids, as many as make one chunk. */
  blueprintRecords(ids: readonly string[]): readonly (Stored<string> | null)[];
  /** Newest first, ties by id ascending. */
  documents(page: Page): readonly Stored<DocumentRecord>[];
  /** Null: there is none. */
  document(id: string): Stored<DocumentRecord> | null;
  corruptRuns(): readonly Corruption[];
  saveCorrupt(corruption: Corruption): void;
  removeCorrupt(runId: string): void;
  close(): void;
}

/** The tables of a file that was opened. */
export function viewsStore(database: DatabaseSyncInstance): ViewsStore {
  const saveMeta = database.prepare(
    'INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  );
  const blueprints = blueprintTable(database);
  const documents = documentTable(database);
  const corrupt = corruptTable(database);
  const damaged = new Set(corrupt.corruptRuns().map(({ runId }) => runId));
  const runs = runTable(database, (id) => damaged.has(id));
  const { inTransaction, shown } = transactions(database);
  return {
    checkpoint: metaIn(database, 'checkpoint'),
    write(rows, position) {
      shown(() => {
        for (const each of rows.runs) runs.save(each);
        for (const each of rows.blueprints) blueprints.save(each);
        for (const each of rows.documents) documents.save(each);
        if (position !== null) saveMeta.run('checkpoint', position);
      });
    },
    find: runs.find,
    list: runs.list,
    count: runs.count,
    unfinished: runs.unfinished,
    paused: runs.paused,
    deadlines: runs.deadlines,
    corruptRuns: corrupt.corruptRuns,
    // What a run is found by follows from whether it is damaged.
    saveCorrupt(corruption) {
      damaged.add(corruption.runId);
      inTransaction(() => {
        corrupt.saveCorrupt(corruption);
        runs.refresh(corruption.runId);
      });
    },
    removeCorrupt(runId) {
      damaged.delete(runId);
      inTransaction(() => {
        corrupt.removeCorrupt(runId);
        runs.refresh(runId);
      });
    },
    blueprintIds: blueprints.ids,
    blueprintRecords: blueprints.records,
    documents: documents.list,
    document: documents.find,
    close: () => database.close(),
  };
}

function corruptTable(
  database: DatabaseSyncInstance,
): Pick<ViewsStore, 'corruptRuns' | 'saveCorrupt' | 'removeCorrupt'> {
  const save = database.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?)');
  const remove = database.prepare('DELETE FROM damaged WHERE run_id = ?');
  const list = database.prepare('SELECT run_id, damage FROM damaged');
  return {
    corruptRuns: () => list.all().flatMap(corruptionIn),
    saveCorrupt: (corruption) => void save.run(corruption.runId, JSON.stringify(corruption)),
    removeCorrupt: (runId) => void remove.run(runId),
  };
}

/** A run stored as corrupt counts as such, even if place and reason cannot be read. */
function corruptionIn(row: unknown): readonly Corruption[] {
  const [runId, corruption] = [textOf(row, 'run_id'), parsed(textOf(row, 'damage'))];
  if (runId === null) return [];
  const [seq, reason] = [fieldOf(corruption, 'seq'), fieldOf(corruption, 'reason')];
  const isWhole = typeof seq === 'number' && typeof reason === 'string';
  return [{ runId, ...(isWhole ? { seq, reason } : { seq: 0, reason: 'it was found so before' }) }];
}

function blueprintTable(database: DatabaseSyncInstance) {
  const save = database.prepare(
    `INSERT INTO blueprints VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE
     SET updated_at = excluded.updated_at, record = excluded.record, checksum = excluded.checksum`,
  );
  const remove = database.prepare('DELETE FROM blueprints WHERE id = ?');
  const list = database.prepare('SELECT id FROM blueprints ORDER BY updated_at DESC, id LIMIT ? OFFSET ?');
  const find = database.prepare('SELECT id, updated_at, record, checksum FROM blueprints WHERE id = ?');
  const listed = database.prepare('SELECT id FROM blueprints INDEXED BY blueprints_newest WHERE id = ?');
  return {
    save({ id, record }: BlueprintRow): void {
      if (record === null) {
        remove.run(id);
        return;
      }
      const cells = [id, record.updatedAt, JSON.stringify(record)];
      save.run(...cells, checksumOf(...cells));
    },
    ids: ({ limit, offset }: Page): readonly string[] =>
      list.all(limit, offset).flatMap((row) => textOf(row, 'id') ?? []),
    records(ids: readonly string[]): readonly (Stored<string> | null)[] {
      const records: (Stored<string> | null)[] = [];
      let chars = 0;
      for (const id of ids) {
        const found: unknown = find.get(id);
        const row = isSound(found, 'id', 'updated_at', 'record') ? textOf(found, 'record') : null;
        // The index names a row that cannot be found any more, too: its id is damaged.
        const isThere = found !== undefined || listed.get(id) !== undefined;
        records.push(isThere ? { id, row } : null);
        if (row !== null) chars += row.length;
        if (chars >= CHUNK_CHARS) break;
      }
      return records;
    },
  };
}
