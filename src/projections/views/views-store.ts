/** The rows of the stored views, in the views worker. Rows and their checkpoint are written in one transaction. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DocumentRecord } from '../../documents/events.js';
import type { BlueprintRow } from './blueprint-row.js';
import type { Corruption } from '../corrupt-runs.js';
import type { DocumentRow } from './document-table.js';
import type { LeafRow, LeafTable } from './leaf-table.js';
import { leafTable } from './leaf-table.js';
import { documentTable } from './document-table.js';
import type { Page, RunSummary } from '../run-summary.js';
import type { RunTable } from './run-table.js';
import { runTable } from './run-table.js';
import { fieldOf } from '../../system/untrusted.js';
import { jsonOf, RowUnreadable, textOf } from './stored-row.js';
import { metaIn } from './views-file.js';
import { transactions } from './views-transactions.js';
import { journalOf } from '../../system/unused-bytes.js';
import { isRunSummary } from '../run-summary.js';

/** Size in UTF-16 units at which a chunk of records ends; the last one may be as large as an append. */
const CHUNK_CHARS = 512 * 1024;

/** Rows that have changed. */
export interface ViewsRows {
  readonly runs: readonly RunSummary[];
  readonly blueprints: readonly BlueprintRow[];
  readonly documents: readonly DocumentRow[];
  readonly leaves: readonly LeafRow[];
}

/** Every function throws what SQLite throws, and RowUnreadable. */
export interface ViewsTables
  extends
    Pick<
      RunTable,
      'find' | 'expired' | 'families' | 'list' | 'count' | 'counts' | 'overview' | 'unfinished' | 'paused' | 'deadlines'
    >,
    Pick<LeafTable, 'endedWithoutLeaf' | 'leafOf' | 'erasedAs'> {
  /** @throws {ViewsFull} the rows are shown until the next write and are not stored */
  write(rows: ViewsRows, checkpoint: string | null): void;
  /** Newest update first, ties by id ascending. */
  blueprintIds(page: Page): readonly string[];
  /**
   * The records of the first ids, as many as fit into one chunk, as JSON text, or null for each that does not exist.
   */
  blueprintRecords(ids: readonly string[]): readonly (string | null)[];
  /** Newest first, ties by id ascending. */
  documents(page: Page): readonly DocumentRecord[];
  document(id: string): DocumentRecord | null;
  /** Zeroes what erased runs have left in the file and its journal. */
  zeroErased(): void;
  saveCorrupt(corruption: Corruption): void;
  removeCorrupt(runId: string): void;
}

export interface ViewsStore extends ViewsTables {
  /** Position up to which the rows were folded, or null if there are no usable rows. */
  readonly checkpoint: string | null;
  corruptRuns(): readonly Corruption[];
  close(): void;
}

/** The tables of a file that was opened. */
export function viewsStore(database: DatabaseSyncInstance, file: string): ViewsStore {
  const saveMeta = database.prepare(
    'INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  );
  const blueprints = blueprintTable(database);
  const documents = documentTable(database);
  const leaves = leafTable(database);
  const corrupt = corruptTable(database);
  const corruptIds = new Set(corrupt.corruptRuns().map(({ runId }) => runId));
  const { save: saveRuns, refresh, erase, ...runs } = runTable(database, (id) => corruptIds.has(id));
  const { inTransaction, shown } = transactions(database);
  const journal = journalOf(database, file);
  return {
    checkpoint: metaIn(database, 'checkpoint'),
    write(rows, position) {
      shown(() => {
        saveRuns(rows.runs);
        for (const { id, status } of rows.runs) if (status === 'completed' || status === 'failed') leaves.saveEnd(id);
        for (const each of rows.blueprints) blueprints.save(each);
        for (const each of rows.documents) documents.save(each);
        // After the runs, because a leaf names the row of its run.
        for (const each of rows.leaves) {
          leaves.save(each);
          const { leaf, kept } = each;
          if (leaf.kind === 'run' || leaf.what !== 'run') continue;
          erase(leaf.id, kept === undefined ? null : keptRun(kept));
          if (corruptIds.delete(leaf.id)) corrupt.removeCorrupt(leaf.id);
        }
        if (position !== null) saveMeta.run('checkpoint', position);
      });
      journal.checkpointWhenDue();
    },
    zeroErased: () => journal.zero(),
    ...runs,
    corruptRuns: corrupt.corruptRuns,
    // The facets and the totals of a run depend on whether it is corrupt.
    saveCorrupt(corruption) {
      const wasCorrupt = corruptIds.has(corruption.runId);
      corruptIds.add(corruption.runId);
      inTransaction(() => {
        corrupt.saveCorrupt(corruption);
        refresh(corruption.runId, wasCorrupt);
      });
    },
    removeCorrupt(runId) {
      const wasCorrupt = corruptIds.delete(runId);
      inTransaction(() => {
        corrupt.removeCorrupt(runId);
        refresh(runId, wasCorrupt);
      });
    },
    blueprintIds: blueprints.ids,
    blueprintRecords: blueprints.records,
    documents: documents.list,
    document: documents.find,
    endedWithoutLeaf: leaves.endedWithoutLeaf,
    leafOf: leaves.leafOf,
    erasedAs: leaves.erasedAs,
    close() {
      database.close();
      journal.close();
    },
  };
}

/** @throws {RowUnreadable} */
function keptRun(kept: string): RunSummary | null {
  const run: unknown = JSON.parse(kept);
  if (!isRunSummary(run)) throw new RowUnreadable('erased run');
  return run;
}

function corruptTable(
  database: DatabaseSyncInstance,
): Pick<ViewsStore, 'corruptRuns' | 'saveCorrupt' | 'removeCorrupt'> {
  const save = database.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?)');
  const remove = database.prepare('DELETE FROM damaged WHERE run_id = ?');
  const list = database.prepare('SELECT run_id, damage FROM damaged');
  return {
    corruptRuns: () => list.all().map(corruptionIn),
    saveCorrupt: (corruption) => void save.run(corruption.runId, JSON.stringify(corruption)),
    removeCorrupt: (runId) => void remove.run(runId),
  };
}

/** @throws {RowUnreadable} the row is not what this service wrote */
function corruptionIn(row: unknown): Corruption {
  const runId = textOf(row, 'run_id');
  const corruption = jsonOf(row, 'damage', `corrupt run ${runId}`);
  const [seq, reason] = [fieldOf(corruption, 'seq'), fieldOf(corruption, 'reason')];
  if (runId !== null && typeof seq === 'number' && typeof reason === 'string') return { runId, seq, reason };
  throw new RowUnreadable(`corrupt run ${runId}`);
}

function blueprintTable(database: DatabaseSyncInstance) {
  const save = database.prepare(
    `INSERT INTO blueprints VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, record = excluded.record`,
  );
  const remove = database.prepare('DELETE FROM blueprints WHERE id = ?');
  const list = database.prepare('SELECT id FROM blueprints ORDER BY updated_at DESC, id LIMIT ? OFFSET ?');
  const find = database.prepare('SELECT id, record FROM blueprints WHERE id = ?');
  return {
    save({ id, record }: BlueprintRow): void {
      if (record === null) remove.run(id);
      else save.run(id, record.updatedAt, JSON.stringify(record));
    },
    ids: ({ limit, offset }: Page): readonly string[] =>
      list.all(limit, offset).flatMap((row) => textOf(row, 'id') ?? []),
    records(ids: readonly string[]): readonly (string | null)[] {
      const records: (string | null)[] = [];
      let chars = 0;
      for (const id of ids) {
        const row: unknown = find.get(id);
        const record = row === undefined ? null : blueprintText(row, id);
        records.push(record);
        chars += record?.length ?? 0;
        if (chars >= CHUNK_CHARS) break;
      }
      return records;
    },
  };
}

/** A stored blueprint as JSON text. @throws {RowUnreadable} the row is not what this service wrote */
function blueprintText(row: unknown, id: string): string | null {
  const record = jsonOf(row, 'record', `blueprint ${id}`);
  if (fieldOf(record, 'id') !== id) throw new RowUnreadable(`blueprint ${id}`);
  return textOf(row, 'record');
}
