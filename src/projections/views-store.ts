/**
 * The stored read models: one SQLite file that may be deleted while the service is stopped. Rows and the checkpoint
 * they were folded to are written in one transaction. It is synced at checkpoints only, so a power cut may cost the
 * newest rows but never the file; they are folded again. Runs inside the views worker.
 */
import { rmSync } from 'node:fs';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import type { DocumentRecord } from '../library/document-record.js';
import type { BlueprintRow } from './blueprint-row.js';
import type { UnfinishedRun } from '../run/state.js';
import type { Damage } from './damaged-runs.js';
import type { DocumentRow } from './document-table.js';
import { documentTable, DOCUMENTS_SCHEMA } from './document-table.js';
import type { Page, RunSummary } from './run-summary.js';

/** Raise it when rows mean something else: the file is then folded anew. */
const VIEWS_VERSION = '7';

/** Records are handed out until they have this many UTF-16 units; the last may be as large as an append. */
const PIECE_CHARS = 512 * 1024;

const SETTINGS = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;';

const SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE runs (
    -- In the order of the runs' first events.
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL
  );
  CREATE TABLE blueprints (
    id TEXT PRIMARY KEY,
    updated_at TEXT NOT NULL,
    record TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE damaged (run_id TEXT PRIMARY KEY, damage TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX blueprints_newest ON blueprints (updated_at DESC, id);
  CREATE INDEX runs_newest ON runs (created_at DESC, id);
  CREATE INDEX runs_unfinished ON runs (key) WHERE status IN ('pending', 'running');
${DOCUMENTS_SCHEMA}`;

/** Rows that have changed. */
export interface ViewsRows {
  readonly runs: readonly RunSummary[];
  readonly blueprints: readonly BlueprintRow[];
  readonly documents: readonly DocumentRow[];
}

export interface ViewsStore {
  /** Position the rows were folded to; null when there are none yet, or none that can be trusted. */
  readonly checkpoint: string | null;
  write(rows: ViewsRows, checkpoint: string | null): void;
  find(id: string): RunSummary | null;
  list(page: Page): readonly RunSummary[];
  unfinished(): readonly UnfinishedRun[];
  /** Newest update first, ties by id ascending. */
  blueprintIds(page: Page): readonly string[];
  /** Their records as JSON text, null where there is none: of the first ids, as many as make one piece. */
  blueprintRecords(ids: readonly string[]): readonly (string | null)[];
  /** Newest first, ties by id ascending. */
  documents(page: Page): readonly DocumentRecord[];
  document(id: string): DocumentRecord | null;
  damagedRuns(): readonly Damage[];
  saveDamaged(damage: Damage): void;
  close(): void;
}

/** The log the rows are folded from. */
export interface FoldedLog {
  readonly identity: string;
  /** Newest position. */
  readonly head: string | null;
  /** Its file, which is refused when rows were folded from another log or past its head; absent: they are folded again. */
  readonly file?: string;
}

/** What is wrong with a log beside rows that were folded from one. */
export interface LogRefused {
  readonly refused: 'another' | 'behind';
  /** The log's. */
  readonly file: string;
}

/** Opens the file, or begins it anew when its rows cannot be used. */
export function openViewsStore(file: string, log: FoldedLog): ViewsStore | LogRefused {
  const found = openFound(file);
  if (found === null) return storeIn(openAnew(file, log.identity));
  const refused = refusalOf(log, found);
  if (refused === null && metaIn(found, 'version') === VIEWS_VERSION) return storeIn(found);
  found.close();
  if (refused !== null && log.file !== undefined) return { refused, file: log.file };
  return storeIn(openAnew(file, log.identity));
}

function storeIn(database: DatabaseSyncInstance): ViewsStore {
  const saveMeta = database.prepare(
    'INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  );
  const save = database.prepare(
    `INSERT INTO runs (id, created_at, status, summary) VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET status = excluded.status, summary = excluded.summary`,
  );
  const find = database.prepare('SELECT summary FROM runs WHERE id = ?');
  const list = database.prepare('SELECT summary FROM runs ORDER BY created_at DESC, id LIMIT ? OFFSET ?');
  const listBackwards = database.prepare('SELECT summary FROM runs ORDER BY created_at, id DESC LIMIT ? OFFSET ?');
  // Rows are never deleted, so the last key counts them.
  const count = database.prepare('SELECT max(key) AS rows FROM runs');
  const unfinished = database.prepare(
    `SELECT id, summary ->> 'owner' AS owner FROM runs WHERE status IN ('pending', 'running') ORDER BY key`,
  );

  const shelf = blueprintTable(database);
  const documents = documentTable(database);
  return {
    checkpoint: metaIn(database, 'checkpoint'),
    write(rows, position) {
      database.exec('BEGIN');
      try {
        for (const each of rows.runs) save.run(each.id, each.createdAt, each.status, JSON.stringify(each));
        for (const each of rows.blueprints) shelf.save(each);
        for (const each of rows.documents) documents.save(each);
        if (position !== null) saveMeta.run('checkpoint', position);
        database.exec('COMMIT');
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw error;
      }
    },
    find: (id) => summaryIn(find.get(id)),
    // What is passed over is read too: a page of the older half is found from the other end.
    list({ limit, offset }) {
      const all = Number(Reflect.get(count.get() ?? {}, 'rows') ?? 0);
      const taken = Math.max(0, Math.min(limit, all - offset));
      const isOld = offset > all / 2;
      const found = isOld ? listBackwards.all(taken, all - offset - taken).reverse() : list.all(limit, offset);
      return found.flatMap((row) => summaryIn(row) ?? []);
    },
    unfinished: () =>
      unfinished.all().flatMap((row) => {
        const runId = textOf(row, 'id');
        return runId === null ? [] : [{ runId, owner: textOf(row, 'owner') }];
      }),
    ...damagedTable(database),
    blueprintIds: shelf.ids,
    blueprintRecords: shelf.records,
    documents: documents.list,
    document: documents.find,
    close: () => database.close(),
  };
}

function damagedTable(database: DatabaseSyncInstance): Pick<ViewsStore, 'damagedRuns' | 'saveDamaged'> {
  const save = database.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?)');
  const list = database.prepare('SELECT damage FROM damaged');
  return {
    damagedRuns: () => list.all().flatMap((row) => JSON.parse(textOf(row, 'damage') ?? '[]') as Damage | []),
    saveDamaged: (damage) => void save.run(damage.runId, JSON.stringify(damage)),
  };
}

function blueprintTable(database: DatabaseSyncInstance) {
  const save = database.prepare(
    `INSERT INTO blueprints VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, record = excluded.record`,
  );
  const remove = database.prepare('DELETE FROM blueprints WHERE id = ?');
  const list = database.prepare('SELECT id FROM blueprints ORDER BY updated_at DESC, id LIMIT ? OFFSET ?');
  const find = database.prepare('SELECT record FROM blueprints WHERE id = ?');
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
        const record = textOf(find.get(id), 'record');
        records.push(record);
        chars += record?.length ?? 0;
        if (chars >= PIECE_CHARS) break;
      }
      return records;
    },
  };
}

/** The file as it is; null when it tells of no log: none there, damaged, or none of ours. */
function openFound(file: string): DatabaseSyncInstance | null {
  let database: DatabaseSyncInstance | null = null;
  try {
    database = new DatabaseSync(file);
    database.exec(SETTINGS);
    if (metaIn(database, 'identity') !== null) return database;
  } catch {
    // All of it can be folded again.
  }
  database?.close();
  return null;
}

function refusalOf(log: FoldedLog, database: DatabaseSyncInstance): LogRefused['refused'] | null {
  if (metaIn(database, 'identity') !== log.identity) return 'another';
  const checkpoint = metaIn(database, 'checkpoint');
  return checkpoint !== null && (log.head === null || checkpoint > log.head) ? 'behind' : null;
}

function openAnew(file: string, identity: string): DatabaseSyncInstance {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true, recursive: true });
  const database = new DatabaseSync(file);
  database.exec(SETTINGS);
  database.exec('BEGIN');
  database.exec(SCHEMA);
  const save = database.prepare('INSERT INTO meta VALUES (?, ?)');
  save.run('identity', identity);
  save.run('version', VIEWS_VERSION);
  database.exec('COMMIT');
  return database;
}

function metaIn(database: DatabaseSyncInstance, key: string): string | null {
  return textOf(database.prepare('SELECT value FROM meta WHERE key = ?').get(key), 'value');
}

function textOf(row: unknown, column: string): string | null {
  if (typeof row !== 'object' || row === null) return null;
  const value: unknown = Reflect.get(row, column);
  return typeof value === 'string' ? value : null;
}

/** Only this file writes the column. */
function summaryIn(row: unknown): RunSummary | null {
  const text = textOf(row, 'summary');
  if (text === null) return null;
  return JSON.parse(text) as RunSummary;
}
