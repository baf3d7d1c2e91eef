/** Creates and opens the file of the embedded log. */
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { ACCEPT_LOSS } from '../port.js';
import { isRow, numberIn, textIn } from './cells.js';
import type { KnownHead } from './head-file.js';
import { headFileOf, knownHead, lossOf } from './head-file.js';
import { SALVAGE, findGaps } from './index-check.js';
import { faultOf } from './faults.js';
import { LOG_VERSION, refusalOf } from '../log-version.js';

/** Marks the file as an event log of this service ("CRSL"), so that no other database is mistaken for one. */
const APPLICATION_ID = 0x4352534c;

/** Page cache in KiB. The index of stream names should fit into it, because names are looked up in random order. */
const CACHE_KIB = 64 * 1024;

/** How long opening waits, in milliseconds, for a reader that only probes whether the file is in use (read-only.ts). */
const PROBE_WAIT_MS = 1_000;

/**
 * Acknowledged appends survive a power cut (synchronous, fullfsync); one process writes (locking_mode); the store runs
 * checkpoints itself (wal_autocheckpoint), because SQLite hides the failure of an automatic one; SQLite checks pages as
 * it reads them (cell_size_check).
 */
const SETTINGS = [
  `busy_timeout = ${PROBE_WAIT_MS}`,
  'locking_mode = EXCLUSIVE',
  'journal_mode = WAL',
  'synchronous = FULL',
  'fullfsync = ON',
  'checkpoint_fullfsync = ON',
  'wal_autocheckpoint = 0',
  `cache_size = -${CACHE_KIB}`,
  'cell_size_check = ON',
  // See system/unused-bytes.ts for what it leaves.
  'secure_delete = ON',
];

/** Integer keys in creation order make inserts fast; a stream's long name is stored and indexed once. */
const TABLES = `
  CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX events_by_stream ON events (stream, revision);
  CREATE TABLE log (identity TEXT NOT NULL) STRICT;
`;

/**
 * The streams that were removed, in the order of their removals. What their events added to the counts of the indexes keeps
 * a lost entry detectable. `is_zeroed`: no byte of their texts is left in the unused bytes of the file.
 */
export const REMOVED = `
  TABLE IF NOT EXISTS removed (
    key INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL UNIQUE,
    events INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    last INTEGER NOT NULL,
    is_zeroed INTEGER NOT NULL
  ) STRICT`;

interface OpenedFile {
  readonly database: DatabaseSyncInstance;
  /** Whether events are missing in the middle of it. */
  readonly hasGaps: boolean;
}

/**
 * Opens a log's file for this process alone, creating it when it is missing.
 *
 * @throws {Error} another process has it open ("database is locked"), it cannot be opened, it is not a log, or it lacks
 *   events that its head file records
 */
export function openLogFile(file: string): OpenedFile {
  const known = knownHead(file);
  if (!existsSync(file)) {
    if (known !== null) throw new Error(`it is missing, but "${basename(headFileOf(file))}" exists: ${ACCEPT_LOSS}`);
    createLog(file);
  }
  if (statSync(file).size === 0) throw new Error(IS_EMPTY);
  const isAfterKill = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const database = new DatabaseSync(file);
  try {
    for (const setting of SETTINGS) database.exec(`PRAGMA ${setting}`);
    database.exec('BEGIN IMMEDIATE');
    if (kindOf(database) === 'new') throw new Error(IS_EMPTY);
    raiseVersion(database);
    database.exec(`CREATE ${REMOVED}`);
    database.exec('COMMIT');
    const end = endOf(database);
    const loss = known && lossOf(end, known);
    if (loss !== null) throw new Error(`${loss}: ${ACCEPT_LOSS}`);
    return { database, hasGaps: findGaps(database, { position: end.position, isAfterKill }) };
  } catch (error) {
    database.close();
    throw withRemedy(error);
  }
}

/** Adds to the error of a corrupt file what to do about it. Returns other errors unchanged. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof Error) || faultOf(error) !== 'corrupt') return error;
  return new Error(`${error.message}: ${SALVAGE}`, { cause: error });
}

/** The identity of a log and its newest position. */
export function endOf(database: DatabaseSyncInstance): KnownHead {
  const read = (sql: string): readonly unknown[] => {
    const row: unknown = database.prepare(sql, { returnArrays: true }).get();
    return isRow(row) ? row : [];
  };
  return {
    identity: textIn(read('SELECT identity FROM log'), 0),
    position: numberIn(read(END), 0),
  };
}

/** A removed stream may have had the newest event. */
const END = `
  SELECT max(coalesce((SELECT max(position) FROM events), 0), coalesce((SELECT max(last) FROM removed), 0))`;

const STREAMS = `
  SELECT substr(name, 1, instr(name || '-', '-') - 1) AS category, count(*) FROM streams
  WHERE id NOT IN (SELECT stream FROM removed) GROUP BY category`;

/** How many streams a log has, by category. */
export function streamsOf(database: DatabaseSyncInstance): ReadonlyMap<string, number> {
  const rows: readonly unknown[] = database.prepare(STREAMS, { returnArrays: true }).all();
  return new Map(rows.filter(isRow).map((row) => [textIn(row, 0), numberIn(row, 1)]));
}

/** Names of the streams that were removed. */
export function removedFrom(database: DatabaseSyncInstance): readonly string[] {
  const named = 'SELECT name FROM streams JOIN removed ON removed.stream = streams.id';
  const rows: readonly unknown[] = database.prepare(named, { returnArrays: true }).all();
  return rows.filter(isRow).map((row) => textIn(row, 0));
}

/** An empty file has lost its data: a new log always has its tables. SQLite would drop the journal beside it. */
const IS_EMPTY = 'the file is empty: restore it from a backup';

/** Creates the file under another name and renames it: a crash leaves no file without tables. */
function createLog(file: string): void {
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new Error('it is missing, but its journal exists: restore both from a backup');
  }
  const draft = `${file}.new`;
  for (const suffix of ['', '-journal']) rmSync(draft + suffix, { force: true });
  const database = new DatabaseSync(draft);
  try {
    database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; BEGIN IMMEDIATE');
    createTables(database, randomUUID());
    database.exec('COMMIT');
  } finally {
    database.close();
  }
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/** Whether a database is a log or still empty. @throws {Error} it is no log, or needs a newer version of this service */
export function kindOf(database: DatabaseSyncInstance): 'new' | 'log' {
  const applicationId = pragmaOf(database, 'application_id');
  const version = pragmaOf(database, 'user_version');
  if (applicationId === 0 && version === 0 && pragmaOf(database, 'schema_version') === 0) return 'new';
  if (applicationId !== APPLICATION_ID) throw new Error('the file is no event log');
  const refusal = refusalOf(Number(version));
  if (refusal !== null) throw new Error(refusal);
  return 'log';
}

/** From now on the log needs this version. Writes nothing if it did before, so that a full disk does not matter. */
function raiseVersion(database: DatabaseSyncInstance): void {
  if (Number(pragmaOf(database, 'user_version')) < LOG_VERSION) database.exec(`PRAGMA user_version = ${LOG_VERSION}`);
}

/** Creates the tables of an empty log with this identity. */
export function createTables(database: DatabaseSyncInstance, identity: string): void {
  database.exec(TABLES);
  database.exec(`CREATE ${REMOVED}`);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  database.exec(`PRAGMA user_version = ${LOG_VERSION}`);
  database.prepare('INSERT INTO log (identity) VALUES (?)').run(identity);
}

/** A new file's name is durable only once its folder is synced; Windows cannot sync folders. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function pragmaOf(database: DatabaseSyncInstance, name: string): unknown {
  const row: unknown = database.prepare(`PRAGMA ${name}`).get();
  return typeof row === 'object' && row !== null ? Object.values(row)[0] : undefined;
}
