/**
 * The file of the stored read models: SQLite, and may be deleted while the service is stopped. It is synced only at
 * checkpoints, so that a power cut may lose the newest rows, which are folded again, but never the file.
 */
import { rmSync, statSync } from 'node:fs';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { DOCUMENTS_SCHEMA } from './document-table.js';
import { LEAVES_SCHEMA } from './leaf-table.js';
import { FACETS_SCHEMA } from './run-facets.js';
import { RUNS_SCHEMA } from './run-table.js';
import { TOTALS_SCHEMA } from './run-totals.js';
import { textOf } from './stored-row.js';

/** Raise it when the meaning of rows changes: the file is then rebuilt. */
const VIEWS_VERSION = '30';

/**
 * `cell_size_check` finds a damaged page when it is read, before its cells are used. `busy_timeout` (milliseconds) is
 * the wait for another program that has locked the file for a moment. The store checkpoints the journal (views-store.ts).
 */
const SETTINGS = `PRAGMA busy_timeout = 1000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 0;`;

const SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE blueprints (
    id TEXT PRIMARY KEY,
    updated_at TEXT NOT NULL,
    record TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE damaged (run_id TEXT PRIMARY KEY, damage TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX blueprints_newest ON blueprints (updated_at DESC, id);
${RUNS_SCHEMA}${FACETS_SCHEMA}${TOTALS_SCHEMA}${DOCUMENTS_SCHEMA}${LEAVES_SCHEMA}`;

/** SQLite's default. */
const PAGE_BYTES = 4_096;

/** The log the rows are folded from. */
export interface FoldedLog {
  readonly identity: string;
  /** Newest position. */
  readonly head: string | null;
  /**
   * The embedded log's file, which is refused when rows were folded from another embedded log or past its head.
   * Absent for a server: the rows are folded again.
   */
  readonly file?: string;
}

/** The reason why a log does not fit the stored rows. */
export interface LogRefused {
  readonly refused: 'another' | 'behind';
  /** The position of the log. */
  readonly file: string;
}

/**
 * Opens the file. Returns null if it must be recreated: it is missing, corrupt, of another log or of another version.
 */
export function openViewsFile(file: string, log: FoldedLog): DatabaseSyncInstance | LogRefused | null {
  let database: DatabaseSyncInstance | null = null;
  try {
    const isAfterKill = sizeOf(`${file}-wal`) > 0;
    // SQLite would read the missing part of an incomplete page as zeros.
    if (sizeOf(file) % PAGE_BYTES !== 0) return null;
    database = new DatabaseSync(file);
    database.exec(SETTINGS);
    const use = isAfterKill && !isConsistent(database) ? null : useOf(database, log);
    if (use === 'usable') return database;
    database.close();
    return use;
  } catch {
    // Everything in it can be folded again.
    if (database?.isOpen === true) database.close();
    return null;
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** `usable`, or null if the file must be recreated, or the reason why the log does not fit the file. */
function useOf(database: DatabaseSyncInstance, log: FoldedLog): 'usable' | LogRefused | null {
  const identity = metaIn(database, 'identity');
  if (identity === null) return null;
  // Rows from a server's log prove nothing about earlier events of the embedded log.
  if (log.file !== undefined && metaIn(database, 'source') === 'server') return null;
  const checkpoint = metaIn(database, 'checkpoint');
  const isBehind = checkpoint !== null && (log.head === null || checkpoint > log.head);
  if (identity !== log.identity || isBehind) {
    const refused = identity === log.identity ? 'behind' : 'another';
    return log.file === undefined ? null : { refused, file: log.file };
  }
  return metaIn(database, 'version') === VIEWS_VERSION ? 'usable' : null;
}

/** The kind of log that rows come from, as the file's metadata names it. */
function sourceOf({ file }: Pick<FoldedLog, 'file'>): 'embedded' | 'server' {
  return file === undefined ? 'server' : 'embedded';
}

/** A value of the file's metadata. */
export function metaIn(database: DatabaseSyncInstance, key: string): string | null {
  return textOf(database.prepare('SELECT value FROM meta WHERE key = ?').get(key), 'value');
}

/**
 * Whether the indexes match the rows, because a missing entry would hide a row. Takes about 5 ms for a thousand runs.
 */
function isConsistent(database: DatabaseSyncInstance): boolean {
  return textOf(database.prepare('PRAGMA integrity_check(1)').get(), 'integrity_check') === 'ok';
}

/** Deletes the file, or a folder in its place, and creates an empty file. */
export function createViewsFile(file: string, log: Omit<FoldedLog, 'head'>): DatabaseSyncInstance {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true, recursive: true });
  const database = new DatabaseSync(file);
  database.exec(SETTINGS);
  database.exec('BEGIN');
  database.exec(SCHEMA);
  const save = database.prepare('INSERT INTO meta VALUES (?, ?)');
  save.run('identity', log.identity);
  save.run('source', sourceOf(log));
  save.run('version', VIEWS_VERSION);
  database.exec('COMMIT');
  return database;
}
