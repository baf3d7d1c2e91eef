/** The one folder this service writes to, held by one process at a time. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { ConfigInvalid, CouncilError } from '../errors.js';
import { fieldOf, listOf, reasonOf } from '../system/untrusted.js';
import { isBusy, isStorageFailure } from '../eventlog/embedded/faults.js';
import { DataDirHeld } from '../eventlog/errors.js';

const HOLDER_FILE = 'holder.json';

/**
 * Most earlier instances remembered, 40 bytes each. The runs of a forgotten one wait until it is suspected to be dead,
 * like those of an instance on another machine.
 */
const MAX_PREDECESSORS = 1_000;

/** The process that holds a data directory, named to others that find it held. */
export interface Holder {
  readonly pid: number;
  readonly hostname: string;
  /** ISO 8601. */
  readonly startedAt: string;
}

export interface DataDirectory {
  readonly path: string;
  /** The embedded log: the one thing to back up. */
  readonly logFile: string;
  /** Read models; may be deleted while the service is stopped. */
  readonly viewsDir: string;
  /** Swept at every start. */
  readonly tmpDir: string;
  /** Whether the folder existed before and other users of the machine have access to it. */
  readonly isExposed: boolean;
  /**
   * Records that this instance uses the folder from now on.
   *
   * @returns the last 1,000 instances that used it before on this machine. They have ended, because this process holds
   *   the lock
   */
  recordInstance(instanceId: string): readonly string[];
  /** What this folder has seen of its log: see seen-log.ts. */
  readonly seenLog: SeenLogFile;
  /** Releases the lock. May be called twice. */
  release(): void;
}

/** The file `log-seen`. */
export interface SeenLogFile {
  /** Its text, or null if there is none. */
  read(): string | null;
  /**
   * Overwrites it in place, which takes microseconds and needs no room on the disk.
   *
   * @param text at most 511 bytes
   * @param isDurable whether to wait until the text survives a power cut
   */
  write(text: string, isDurable: boolean): void;
  remove(): void;
}

/** Size of `log-seen`, whose text is padded with spaces, in bytes. */
const SEEN_BYTES = 512;

function seenLogFile(file: string): SeenLogFile {
  return {
    read: () => (existsSync(file) ? readFileSync(file, 'utf8') : null),
    write(text, isDurable) {
      const descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT);
      try {
        writeSync(descriptor, `${text.padEnd(SEEN_BYTES - 1)}\n`, 0);
        if (isDurable) fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    },
    remove: () => rmSync(file, { force: true }),
  };
}

/** What a folder holds of its log. */
export function logFilesIn(path: string): Pick<DataDirectory, 'logFile' | 'seenLog'> {
  return { logFile: join(path, 'log.sqlite'), seenLog: seenLogFile(join(path, 'log-seen')) };
}

/** The storage of the folder fails: a full disk, a mount that is gone, a corrupt file. */
export class DataDirFailed extends CouncilError<{ path: string; reason: string }> {
  readonly code = 'data-dir.failed';
  constructor(data: { path: string; reason: string }, options?: ErrorOptions) {
    super(`Cannot use the data directory "${data.path}": ${data.reason.replaceAll(/\s+/g, ' ')}`, data, options);
  }
}

/** The system's codes for a failure of storage, as opposed to an unusable name. */
const STORAGE_FAILURES: ReadonlySet<string> = new Set([
  ...['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE'],
  ...['ESTALE', 'ENOTCONN', 'ETIMEDOUT', 'EHOSTDOWN', 'ENODEV', 'ENXIO'],
]);

/** Permission bits of the group and of all other users, which no file of this process has. Windows has no such bits. */
const OTHERS = 0o077;

/** Makes all files and folders that this process creates from now on private to its user (modes 0600 and 0700). */
export function makeFilesPrivate(): void {
  process.umask(OTHERS);
}

/**
 * Takes the data directory, creating what is missing. All files that this process creates afterwards are private. The
 * lock is a file lock that the system drops with the process, however it ends.
 *
 * @throws {DataDirHeld} naming the process that holds it
 * @throws {DataDirFailed} when its storage fails
 * @throws {ConfigInvalid} when the folder cannot be used
 */
export function openDataDirectory(folder: string, holder: Holder): DataDirectory {
  const path = resolve(folder);
  const [viewsDir, tmpDir] = [join(path, 'views'), join(path, 'tmp')];
  makeFilesPrivate();
  try {
    createFolder(path);
    const isExposed = process.platform !== 'win32' && (statSync(path).mode & OTHERS) !== 0;
    assertWritable(path);
    const release = lock(path, holder);
    rmSync(tmpDir, { recursive: true, force: true });
    mkdirSync(tmpDir);
    createFolder(viewsDir);
    const { hostname } = holder;
    const recordInstance = (instanceId: string): readonly string[] =>
      replaceInstance(path, { instanceId, hostname, tmpDir });
    const files = logFilesIn(path);
    return { path, ...files, viewsDir, tmpDir, isExposed, recordInstance, release };
  } catch (error) {
    if (error instanceof DataDirHeld || error instanceof DataDirFailed) throw error;
    const reason = reasonOf(error);
    if (isFailureOfStorage(error)) throw new DataDirFailed({ path, reason }, { cause: error });
    throw new ConfigInvalid({
      variable: 'DATA_DIR',
      value: folder,
      accepted: `a folder that this process may write to (${reason})`,
    });
  }
}

/** Fails with a code of its own where the disk refuses writes. */
function assertWritable(path: string): void {
  accessSync(path, constants.W_OK);
}

function isFailureOfStorage(error: unknown): boolean {
  return STORAGE_FAILURES.has(String(fieldOf(error, 'code'))) || isStorageFailure(error);
}

/**
 * Creates missing parents one by one. Node's own recursive creation loops for ever below a folder that answers ENOENT,
 * as /proc does.
 */
function createFolder(path: string): void {
  const parent = dirname(path);
  if (!existsSync(parent)) createFolder(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    // The folder may exist, or another process may have created it first.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

function lock(path: string, holder: Holder): () => void {
  const holderFile = join(path, HOLDER_FILE);
  const database = lockedDatabase(path);
  writeFileSync(holderFile, JSON.stringify(holder));
  return () => {
    if (!database.isOpen) return;
    try {
      rmSync(holderFile, { force: true });
    } catch {
      // The file only names the holder; the next holder overwrites it.
    }
    database.close();
  };
}

/**
 * Opens a database and begins a transaction that never ends. This is the lock: no other process can begin one, and the
 * system ends it together with this process.
 */
function lockedDatabase(path: string): DatabaseSyncInstance {
  let database: DatabaseSyncInstance | null = null;
  try {
    database = new DatabaseSync(join(path, 'lock.sqlite'));
    database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE');
    return database;
  } catch (error) {
    database?.close();
    if (isBusy(error)) throw new DataDirHeld({ path, holder: dataDirectoryHolder(path) });
    if (isFailureOfStorage(error)) throw error;
    const reason = `its file lock.sqlite is corrupt (${reasonOf(error)}): remove it while no service runs there`;
    throw new DataDirFailed({ path, reason }, { cause: error });
  }
}

/**
 * Records the new instance and returns the earlier ones. Instances of another machine, from which the folder was
 * copied, do not count.
 */
function replaceInstance(
  path: string,
  { instanceId, hostname, tmpDir }: { readonly instanceId: string; readonly hostname: string; readonly tmpDir: string },
): readonly string[] {
  const file = join(path, 'instance.json');
  const predecessors = instancesIn(file, hostname);
  const next = { instanceId, hostname, predecessors };
  // Replaces the file atomically, so that a crash in the middle does not lose all ids.
  const draft = join(tmpDir, 'instance.json');
  writeFileSync(draft, JSON.stringify(next), { flush: true });
  renameSync(draft, file);
  return predecessors;
}

/** The instances that a folder names, oldest first. */
function instancesIn(file: string, hostname: string): readonly string[] {
  let last: unknown = null;
  try {
    last = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // There is no file, or it is corrupt: then the runs of earlier instances wait until these are suspected to be dead.
  }
  if (typeof last !== 'object' || last === null || !('instanceId' in last && 'hostname' in last)) return [];
  if (last.hostname !== hostname) return [];
  // Earlier versions recorded the last instance only.
  return [...listOf(fieldOf(last, 'predecessors')), last.instanceId].filter(isWord).slice(-MAX_PREDECESSORS);
}

/**
 * Names the holder of a folder, in one line. The file with its name may be missing or half-written while a process
 * takes the lock.
 */
export function dataDirectoryHolder(path: string): string {
  try {
    const holder: unknown = JSON.parse(readFileSync(join(path, HOLDER_FILE), 'utf8'));
    if (isHolder(holder)) return `process ${holder.pid} on ${holder.hostname} (since ${holder.startedAt})`;
  } catch {
    // The folder is held even if its holder cannot be named.
  }
  return 'another process';
}

function isHolder(holder: unknown): holder is Holder {
  if (typeof holder !== 'object' || holder === null) return false;
  if (!('pid' in holder && 'hostname' in holder && 'startedAt' in holder)) return false;
  return typeof holder.pid === 'number' && isWord(holder.hostname) && isWord(holder.startedAt);
}

function isWord(text: unknown): text is string {
  return typeof text === 'string' && /^\S+$/.test(text);
}
