/** The worker thread of the embedded log: owns its file, appends each batch in one durable transaction. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Stats } from 'node:fs';
import { statSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import { reasonOf } from '../../system/untrusted.js';
import type { Journal } from '../../system/unused-bytes.js';
import { journalOf } from '../../system/unused-bytes.js';
import { serveRpc } from '../../system/worker-rpc.js';
import { faultOf, isBusy } from './faults.js';
import { endOf, openLogFile } from './file.js';
import { HeadFile } from './head-file.js';
import type { FaultCode, LogReady, ServedLog } from './messages.js';
import { pageReader } from './pages.js';
import { extentOf, rowsOf } from './rows.js';
import { EmbeddedStore } from './store.js';

if (parentPort !== null) serve(parentPort, String(workerData));

/** Serves the log in a file over a message port. */
function serve(port: MessagePort, file: string): void {
  let opened: Opened;
  try {
    opened = open(file);
  } catch (error) {
    const ready: LogReady = { refused: reasonOf(error), isHeld: isBusy(error) };
    return serveRpc(port, { ready, api: { close: () => undefined } });
  }
  const { identity, store, hasGaps } = opened;
  serveRpc(port, { ready: { identity, head: store.head, hasGaps } satisfies LogReady, api: served(opened) });
}

interface Opened {
  readonly file: string;
  /** The file that is open, by which another one under its name is detected. */
  readonly stats: Stats;
  readonly identity: string;
  readonly hasGaps: boolean;
  readonly database: DatabaseSyncInstance;
  readonly store: EmbeddedStore;
  readonly headFile: HeadFile;
  readonly journal: Journal;
}

function open(file: string): Opened {
  const { database, hasGaps } = openLogFile(file);
  const { identity, position } = endOf(database);
  const store = new EmbeddedStore(database, position, () => freeBytes(dirname(file)));
  const headFile = new HeadFile(file, identity);
  // Writes the head file at the start, so that it has its space on the disk before the disk is full.
  headFile.write(position);
  const journal = journalOf(database, file, store.isZeroed);
  const opened = { file, stats: statSync(file), identity, hasGaps, database, store, headFile, journal };
  if (!store.isZeroed) zeroRemoved(opened);
  return opened;
}

/** Zeroes what removed streams have left in the file. Appends move no row, so the journal holds the pages that may have it. */
function zeroRemoved({ store, journal }: Pick<Opened, 'store' | 'journal'>): void {
  journal.zero();
  store.noteZeroed();
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** The error of a call, with its code. */
class LogFault extends Error {
  readonly code: FaultCode;
  constructor(code: FaultCode, cause: unknown) {
    super(reasonOf(cause));
    this.code = code;
  }
}

/** Writes to a file that was removed or replaced would be lost. @throws {LogFault} if it was */
function assertInPlace({ file, stats }: Opened): void {
  if (isInPlace(file, stats)) return;
  throw new LogFault('fileReplaced', `"${file}" was removed or replaced while it was open`);
}

/**
 * Whether the open file still has its name. Also true if this cannot be checked, as in a folder without permissions.
 */
function isInPlace(file: string, stats: Stats): boolean {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.ino === stats.ino && found.dev === stats.dev;
  } catch {
    return true;
  }
}

function served(opened: Opened): ServedLog {
  const { database, store, headFile, hasGaps, journal } = opened;
  const read = pageReader(database);
  let broken: LogFault | null = null;

  /** Never retries a failed write: a second sync may report success although the first one lost the data. */
  function written<T>(write: () => T): T {
    if (broken !== null) throw broken;
    try {
      return write();
    } catch (error) {
      broken = error instanceof LogFault ? error : new LogFault('writeFailed', error);
      throw broken;
    }
  }

  function attempted<T>(call: () => T): T {
    if (broken !== null) throw broken;
    try {
      return call();
    } catch (error) {
      throw new LogFault(faultOf(error) ?? 'failed', error);
    }
  }

  /** Runs after the answer, because a checkpoint takes long. The next call reports a failure. */
  function checkpoint(): void {
    try {
      written(() => store.checkpointWhenDue());
    } catch {
      // `written` has stored the error in `broken`.
    }
  }

  return {
    append: (batch) =>
      written(() => {
        const outcomes = store.append(batch);
        assertInPlace(opened);
        headFile.write(store.head);
        queueMicrotask(checkpoint);
        return { outcomes, isFull: store.isFull };
      }),
    remove: (streams) =>
      written(() => {
        const fault = store.remove(streams);
        assertInPlace(opened);
        if (fault === null) zeroRemoved(opened);
        return fault;
      }),
    page: (query) => attempted(() => read(query)),
    extent: () => attempted(() => extentOf(database, hasGaps)),
    rows: (slice) => attempted(() => rowsOf(database, slice)),
    ping() {
      written(() => assertInPlace(opened));
      attempted(() => store.ping());
      if (store.isFull) throw new LogFault('full', 'there is little room');
    },
    checkFile: () => written(() => assertInPlace(opened)),
    close: () =>
      attempted(() => {
        headFile.close();
        database.close();
        journal.close();
      }),
  };
}
