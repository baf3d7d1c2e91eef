/** The file of the chunk index: SQLite, folded from the log. It may be deleted while the service is stopped. */
import { rmSync, statSync } from 'node:fs';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import type { SearchIndexOptions } from './index-client.js';
import { CHUNKS_SCHEMA, FULL_TEXT_SCHEMA, textOf } from './rows.js';

/** Raise it when the meaning of rows or the splitting of words changes: the file is then rebuilt. */
const INDEX_VERSION = '4';

/**
 * `cell_size_check` finds a damaged page when it is read, before its cells are used. `busy_timeout` (milliseconds) is
 * the wait for another program that has locked the file for a moment.
 */
const SETTINGS = `PRAGMA busy_timeout = 1000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 0;`;
/** SQLite's default. */
const PAGE_BYTES = 4_096;

const META = 'CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;';

/** Opens the existing file, or returns null if it is missing, corrupt, or of another log, version or model. */
export function openIndexFile({ file, log, model, dimensions }: SearchIndexOptions): DatabaseSyncInstance | null {
  let database: DatabaseSyncInstance | null = null;
  try {
    // SQLite would read the missing part of an incomplete page as zeros.
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) % PAGE_BYTES !== 0) return null;
    database = new DatabaseSync(file);
    database.exec(SETTINGS);
    const wanted = { identity: log.identity, version: INDEX_VERSION, model, dimensions: String(dimensions) };
    const isOurs = Object.entries(wanted).every(([key, value]) => database && metaIn(database, key) === value);
    const checkpoint = metaIn(database, 'checkpoint');
    const isPast = checkpoint !== null && (log.head === null || checkpoint > log.head);
    if (isOurs && !isPast) return database;
  } catch {
    // The file is not usable, and everything in it can be folded again.
  }
  database?.close();
  return null;
}

/** Deletes the file and creates an empty one. */
export function createIndexFile({ file, log, model, dimensions }: SearchIndexOptions): DatabaseSyncInstance {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true, recursive: true });
  const database = new DatabaseSync(file);
  database.exec(SETTINGS);
  database.exec(`${META}${CHUNKS_SCHEMA}${FULL_TEXT_SCHEMA}`);
  const save = database.prepare('INSERT INTO meta VALUES (?, ?)');
  save.run('identity', log.identity);
  save.run('version', INDEX_VERSION);
  save.run('model', model);
  save.run('dimensions', String(dimensions));
  return database;
}

/** A value of the metadata of the file. */
export function metaIn(database: DatabaseSyncInstance, key: string): string | null {
  return textOf(database.prepare('SELECT value FROM meta WHERE key = ?').get(key), 'value');
}
