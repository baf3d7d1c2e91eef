/**
 * The thread of a backup: writes the copy of a log into a folder with a name of its own, verifies it, and only then gives the
 * folder its final name. SQLite's lock on the copy shows other backups that it is being written.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  rmdirSync,
  statfsSync,
} from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { reasonOf } from '../../system/untrusted.js';
import { zeroUnused } from '../../system/unused-bytes.js';
import { serveRpc } from '../../system/worker-rpc.js';
import { faultOf } from './faults.js';
import { isRow } from './cells.js';
import { createTables, endOf, syncFolder } from './file.js';
import { findGaps } from './index-check.js';
import type { BackupReady, BackupTask, LogExtent, RowSlice, ServedBackup, StoredRow } from './messages.js';
import { TABLES } from './messages.js';
import { rowsOf } from './rows.js';

/** Name of the copy's file: the folder is a DATA_DIR. */
const LOG_FILE = 'log.sqlite';

/** Name of the folder while the copy is incomplete. */
const PARTIAL = '.council-backup-';
const PARTIAL_NAME = /^\.council-backup-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Free bytes that a backup leaves: the log may be on the same disk. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** Characters in one transaction, which ends with a sync: the log's own syncs wait for little that the copy has written. */
const COMMIT_CHARS = 4 * 1024 * 1024;

/**
 * A copy that is cut has no name, so its journal need not survive. The lock lasts as long as the copy is open. The index of
 * streams is written in random order: with SQLite's own cache of 2 MB each sync would write most of it.
 */
const SETTINGS = [
  ...['busy_timeout = 0', 'locking_mode = EXCLUSIVE', 'journal_mode = MEMORY', 'synchronous = FULL', 'fullfsync = ON'],
  ...[`cache_size = -${64 * 1024}`, 'secure_delete = ON'],
];

const INSERTS = {
  streams: 'INSERT INTO streams (id, name) VALUES (?, ?)',
  events: 'INSERT INTO events (position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)',
  removed: 'INSERT INTO removed (key, stream, events, positions, last, is_zeroed) VALUES (?, ?, ?, ?, ?, ?)',
} as const;

function opened(task: BackupTask): { readonly ready: BackupReady; readonly api: { close(): void } } {
  try {
    return { ready: { refused: null }, api: new Copy(task) };
  } catch (error) {
    return { ready: { refused: reasonOf(error) }, api: { close: () => undefined } };
  }
}

class Copy implements ServedBackup {
  readonly #to: string;
  readonly #folder: string;
  readonly #database: DatabaseSyncInstance;
  readonly #hasGaps: boolean;
  /** Of all rows as they were read from the log, but for those of streams that it has removed since. */
  readonly #written = new RowsDigest();
  #chars = 0;
  #verification: Iterator<number, void> | null = null;
  #isNamed = false;

  /** @throws {Error} the target cannot be used */
  constructor({ to, dataDir, extent }: BackupTask) {
    this.#to = resolve(to);
    this.#hasGaps = extent.hasGaps;
    const parent = checkedParent(to, dataDir);
    removeCutCopies(parent);
    assertRoom(parent, extent.bytes);
    this.#folder = join(parent, PARTIAL + randomUUID());
    mkdirSync(this.#folder, { mode: 0o700 });
    try {
      this.#database = new DatabaseSync(join(this.#folder, LOG_FILE));
      for (const setting of SETTINGS) this.#database.exec(`PRAGMA ${setting}`);
      this.#database.exec('BEGIN EXCLUSIVE');
      createTables(this.#database, extent.identity);
    } catch (error) {
      rmSync(this.#folder, { recursive: true, force: true });
      throw error;
    }
  }

  insert(table: RowSlice['table'], rows: readonly StoredRow[]): void {
    assertRoom(this.#folder, 0);
    const insert = this.#database.prepare(INSERTS[table]);
    for (const row of rows) {
      insert.run(...row);
      this.#chars += this.#written.toggle(row);
      if (table === 'removed') this.#remove(Number(row[1]));
    }
    if (this.#chars < COMMIT_CHARS) return;
    this.#chars = 0;
    this.#database.exec('COMMIT; BEGIN EXCLUSIVE');
  }

  /** Removes what was copied of a stream before the log removed it. */
  #remove(stream: number): void {
    const rows: readonly unknown[] = this.#database
      .prepare(`${EVENTS_OF} WHERE stream = ?`, { returnArrays: true })
      .all(stream);
    for (const row of rows) if (isRow(row)) this.#written.toggle(row);
    this.#database.prepare('DELETE FROM events WHERE stream = ?').run(stream);
  }

  verify(extent: LogExtent): number | null {
    this.#verification ??= this.#verified(extent);
    const next = this.#verification.next();
    return next.done === true ? null : next.value;
  }

  /** Reads every row back, then checks the indexes. Yields the position that it has reached. */
  *#verified(extent: LogExtent): Generator<number, void> {
    // Forgets the pages in memory, so that the rows come from the file.
    this.#database.exec('COMMIT; PRAGMA shrink_memory');
    const read = new RowsDigest();
    for (const table of TABLES) {
      for (let after = 0; ;) {
        const rows = rowsOf(this.#database, { table, after, until: Number.MAX_SAFE_INTEGER });
        for (const row of rows) read.toggle(row);
        const last = rows.at(-1);
        if (last === undefined) break;
        after = Number(last[0]);
        if (table === 'events') yield after;
      }
    }
    const end = endOf(this.#database);
    if (!read.equals(this.#written) || end.position !== extent.position)
      throw new Error('the copy differs from the log');
    const hasGaps = findGaps(this.#database, { position: end.position, isAfterKill: false });
    if (hasGaps && !this.#hasGaps) throw new Error('events are missing in the middle of the copy');
  }

  name(): void {
    const hasRemoved = this.#database.prepare('SELECT 1 FROM removed LIMIT 1').get() !== undefined;
    this.#database.close();
    if (hasRemoved) {
      const descriptor = openSync(join(this.#folder, LOG_FILE), 'r+');
      zeroUnused(descriptor, 'all');
      closeSync(descriptor);
    }
    syncFolder(this.#folder);
    renameSync(this.#folder, this.#to);
    // The copy is without a lock for a moment, in which another backup may have taken it for a cut one.
    if (!existsSync(join(this.#to, LOG_FILE))) throw new Error('another backup has removed the copy');
    this.#isNamed = true;
    syncFolder(dirname(this.#to));
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
    if (!this.#isNamed) rmSync(this.#folder, { recursive: true, force: true });
  }
}

const EVENTS_OF = 'SELECT position, stream, revision, id, type, data, metadata FROM events';

/** A digest of rows in any order. */
class RowsDigest {
  readonly #bytes = Buffer.alloc(32);

  /** Adds a row, or takes it out again. Returns its characters. */
  toggle(row: readonly unknown[]): number {
    const text = JSON.stringify(row);
    const hash = createHash('sha256').update(text).digest();
    for (const [at, byte] of hash.entries()) this.#bytes.writeUInt8(this.#bytes.readUInt8(at) ^ byte, at);
    return text.length;
  }

  equals(other: RowsDigest): boolean {
    return this.#bytes.equals(other.#bytes);
  }
}

/** The folder above the target. @throws {Error} the target cannot be used */
function checkedParent(to: string, dataDir: string): string {
  if (!isAbsolute(to)) throw new Error('it is no absolute path');
  const target = resolve(to);
  if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) throw new Error('it exists already');
  const parent = dirname(target);
  if (!existsSync(parent)) throw new Error(`there is no folder "${parent}"`);
  const place = relative(realpathSync(dataDir), join(realpathSync(parent), basename(target)));
  if (!isAbsolute(place) && place.split(sep)[0] !== '..') throw new Error('it is in the data directory');
  return parent;
}

/** @throws {Error} the disk has less room than these bytes and the reserve */
function assertRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= bytes + RESERVE_BYTES) return;
  throw new Error(`its disk has ${mb(bavail * bsize)} free, and the backup needs ${mb(bytes + RESERVE_BYTES)}`);
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

/** Removes the copies that killed backups have left in a folder: no other file, and nothing behind a link. */
function removeCutCopies(parent: string): void {
  for (const entry of readdirSync(parent, { withFileTypes: true })) {
    if (!entry.isDirectory() || !PARTIAL_NAME.test(entry.name)) continue;
    const folder = join(parent, entry.name);
    const file = join(folder, LOG_FILE);
    try {
      if (existsSync(file) && isBeingWritten(file)) continue;
      rmSync(file, { force: true });
      rmdirSync(folder);
    } catch {
      // It holds other files, or another backup ends in this moment.
    }
  }
}

/** Whether a copy has a lock, or this cannot be told. */
function isBeingWritten(file: string): boolean {
  let database: DatabaseSyncInstance | null = null;
  try {
    database = new DatabaseSync(file);
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE; ROLLBACK');
    return false;
  } catch (error) {
    return faultOf(error) !== 'corrupt';
  } finally {
    database?.close();
  }
}

if (parentPort !== null) {
  const { ready, api } = opened(workerData as BackupTask);
  serveRpc(parentPort, { ready, api });
}
