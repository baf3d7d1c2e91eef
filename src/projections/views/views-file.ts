/**
 * The file of the stored read models: SQLite, and may be deleted while the service is stopped. It is synced at
 * checkpoints only, so a power cut may cost the newest rows but never the file; they are folded again.
 */
import { rmSync, statSync } from 'node:fs';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { DOCUMENTS_SCHEMA } from './document-table.js';
import { FACETS_SCHEMA } from './run-facets.js';
import { RUNS_SCHEMA } from './run-table.js';
import { textOf } from './stored-row.js';

/** Raise it when the meaning of rows changes: the file is then rebuilt. */
const VIEWS_VERSION = '17';

const SETTINGS = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;';

const SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE blueprints (
    id TEXT PRIMARY KEY,
    updated_at TEXT NOT NULL,
    record TEXT NOT NULL,
    -- Over id to record.
    checksum INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE damaged (run_id TEXT PRIMARY KEY, damage TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX blueprints_newest ON blueprints (updated_at DESC, id);
${RUNS_SCHEMA}${FACETS_SCHEMA}${DOCUMENTS_SCHEMA}`;

/** The log the rows are folded from. */
export interface FoldedLog {
  readonly identity: string;
  /** Newest position. */
  readonly head: string | null;
  /**
   * Its file, which is refused when rows were folded from another log or past its head; absent: they are folded again.
   */
  readonly file?: string;
}

/** What is wrong with a log beside rows that were folded from one. */
export interface LogRefused {
  readonly refused: 'another' | 'behind';
  /** The log's. */
  readonly file: string;
}

/** Opens the file, or rebuilds it when its rows cannot be used. */
export function openViewsFile(file: string, log: FoldedLog): DatabaseSyncInstance | LogRefused {
  const found = openFound(file);
  if (found === null) return beginViewsFile(file, log.identity);
  const refused = refusalOf(log, found);
  if (refused === null && metaIn(found, 'version') === VIEWS_VERSION) return found;
  found.close();
  return refused !== null && log.file !== undefined ? { refused, file: log.file } : beginViewsFile(file, log.identity);
}

/** A value of the file's metadata. */
export function metaIn(database: DatabaseSyncInstance, key: string): string | null {
  return textOf(database.prepare('SELECT value FROM meta WHERE key = ?').get(key), 'value');
}

/** The existing file; null when it names no log: missing, corrupt (looked for after a kill), or another program's. */
function openFound(file: string): DatabaseSyncInstance | null {
  let database: DatabaseSyncInstance | null = null;
  const isAfterKill = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  try {
    database = new DatabaseSync(file);
    database.exec(SETTINGS);
    const isWhole = !isAfterKill || isConsistent(database);
    if (isWhole && metaIn(database, 'identity') !== null) return database;
  } catch {
    // All of it can be folded again.
  }
  database?.close();
  return null;
}

/** Whether its indexes fit its rows: one that has lost an entry hides a row. About 5 ms for a thousand runs. */
function isConsistent(database: DatabaseSyncInstance): boolean {
  return textOf(database.prepare('PRAGMA integrity_check(1)').get(), 'integrity_check') === 'ok';
}

function refusalOf(log: FoldedLog, database: DatabaseSyncInstance): LogRefused['refused'] | null {
  if (metaIn(database, 'identity') !== log.identity) return 'another';
  const checkpoint = metaIn(database, 'checkpoint');
  return checkpoint !== null && (log.head === null || checkpoint > log.head) ? 'behind' : null;
}

/** Makes an empty file in place of what lies there. */
export function beginViewsFile(file: string, identity: string): DatabaseSyncInstance {
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
