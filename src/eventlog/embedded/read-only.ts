/**
 * The log of a stopped service, opened for reading alone: no byte of its folder changes, no lock is held, and the
 * folder may be read-only.
 */
import { constants, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { DataDirHeld } from '../errors.js';
import type { EventLog } from '../port.js';
import { LogUnreadable } from '../port.js';
import { isBusy } from './faults.js';
import { REMOVED, endOf, kindOf, removedFrom, streamsOf } from './file.js';
import type { KnownHead } from './head-file.js';
import { faultsOf } from './index-check.js';
import type { Page, PageQuery } from './messages.js';
import { allPages, pageReader, streamPages } from './pages.js';
import type { Salvage } from './salvage.js';
import { salvageOf } from './salvage.js';
import { fieldOf, reasonOf } from '../../system/untrusted.js';

export interface ReadOnlyLog extends Pick<EventLog, 'readStream' | 'readAll'> {
  /** Its identity, and the position of its newest event, 0 for none. @throws {LogUnreadable} */
  end(): KnownHead;
  /** How many streams there are, by category. @throws {LogUnreadable} */
  streams(): ReadonlyMap<string, number>;
  /** Names of the streams that were removed. @throws {LogUnreadable} */
  removed(): readonly string[];
  /** Reads what is readable of a corrupt log. */
  readonly salvage: Salvage;
  /** What SQLite finds wrong with the file, at most ten lines, none if it is intact. */
  faults(): readonly string[];
  /** @throws {LogUnreadable} the file has changed since it was opened: what was read may be inconsistent */
  assertUnchanged(): void;
  /** Removes the copy, if one was made. May be called twice. */
  close(): void;
}

/**
 * Opens the file of a log that no process has open.
 *
 * @throws {DataDirHeld} a process has it open
 * @throws {LogUnreadable} it is missing, cannot be read or is not a log
 */
export function openLogReadOnly(file: string): ReadOnlyLog {
  const opened = withFileInError(file, () => open(file));
  const { database, fingerprint, folder } = opened;
  const read = pageReader(database);
  const page = (query: PageQuery): Page => withFileInError(file, () => read(query));
  return {
    readStream: (stream, range = {}) => streamPages(page, stream, range),
    readAll: (after, range = {}) =>
      allPages(page, { after: Number(after ?? 0), until: endOf(database).position }, range),
    end: () => withFileInError(file, () => endOf(database)),
    streams: () => withFileInError(file, () => streamsOf(database)),
    removed: () => withFileInError(file, () => removedFrom(database)),
    salvage: salvageOf(database),
    faults: () => faultsOf(database, 10),
    assertUnchanged() {
      if (fingerprintOf(file) === fingerprint) return;
      throw new LogUnreadable({ file, reason: 'it has changed meanwhile; a service may have started' });
    },
    close() {
      if (database.isOpen) database.close();
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Opened {
  readonly database: DatabaseSyncInstance;
  readonly fingerprint: string;
  /** The folder of a copy of the log, or null if the log itself is read. */
  readonly folder: string | null;
}

function open(file: string): Opened {
  if (statSync(file).size === 0) throw new Error('the file is empty');
  if (isHeld(file)) throw new DataDirHeld({ path: dirname(file), holder: 'another process' });
  const fingerprint = fingerprintOf(file);
  const folder = hasJournal(file) ? mkdtempSync(join(tmpdir(), 'council-log-')) : null;
  try {
    const database = folder === null ? openImmutable(file) : openCopy(file, folder);
    if (kindOf(database) === 'log' && fingerprintOf(file) === fingerprint) {
      // The log of an earlier version has no such table, and must not change.
      const has = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'removed'").get() !== undefined;
      if (!has) database.exec(`CREATE TEMP ${REMOVED}`);
      return { database, fingerprint, folder };
    }
    database.close();
    throw new Error('the file is empty, or has changed meanwhile');
  } catch (error) {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Whether another process has the log open; the check changes nothing. That process holds an exclusive lock (file.ts),
 * so SQLite refuses the shared lock of a reader as busy. If no process has it open, SQLite takes the shared lock and
 * then fails to get the exclusive lock, because the file is open read-only. It then drops the shared lock and has
 * created no journal.
 */
function isHeld(file: string): boolean {
  const database = new DatabaseSync(uriOf(file, 'mode=ro'), { readOnly: true });
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE');
    database.exec('SELECT identity FROM log');
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    database.close();
  }
}

/** Whether a killed service has left a journal: it holds events that are not in the file yet. */
function hasJournal(file: string): boolean {
  return (statSync(journalOf(file), { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function openImmutable(file: string): DatabaseSyncInstance {
  return new DatabaseSync(uriOf(file, 'immutable=1'), { readOnly: true });
}

/** SQLite reads a journal only where it may write beside it, so both are copied (copy-on-write where supported). */
function openCopy(file: string, folder: string): DatabaseSyncInstance {
  const copy = join(folder, 'log.sqlite');
  copyFileSync(file, copy, constants.COPYFILE_FICLONE);
  copyFileSync(journalOf(file), journalOf(copy), constants.COPYFILE_FICLONE);
  return new DatabaseSync(copy);
}

/** A fingerprint of the log's files that changes with every write. */
function fingerprintOf(file: string): string {
  return [file, journalOf(file)]
    .map((each) => statSync(each, { bigint: true, throwIfNoEntry: false }))
    .map((found) => (found === undefined ? '-' : `${found.ino}:${found.size}:${found.mtimeNs}`))
    .join(' ');
}

function journalOf(file: string): string {
  return `${file}-wal`;
}

function uriOf(file: string, query: string): string {
  return `${pathToFileURL(file).href}?${query}`;
}

/** Runs an action on a file; an error names the file. */
function withFileInError<T>(file: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof DataDirHeld) throw error;
    throw new LogUnreadable(
      { file, reason: fieldOf(error, 'code') === 'ENOENT' ? 'there is no such file' : reasonOf(error) },
      { cause: error },
    );
  }
}
