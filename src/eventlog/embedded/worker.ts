/** The worker thread of the embedded log: owns its file, appends each batch in one durable transaction. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Stats } from 'node:fs';
import { statSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { faultOf } from './faults.js';
import { endOf, openLogFile } from './file.js';
import { HeadFile } from './head-file.js';
import type { FaultCode, LogReady, ServedLog } from './messages.js';
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import { pageReader } from './pages.js';
import { EmbeddedStore } from './store.js';
import { fieldOf, reasonOf } from '../../system/untrusted.js';
import { serveRpc } from '../../system/worker-rpc.js';

/** SQLITE_BUSY of https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5;

const file: unknown = workerData;
// Else it was imported for `serve`.
if (parentPort !== null && typeof file === 'string') serve(parentPort, file);

/** Serves the log in a file over a message port. */
export function serve(port: MessagePort, file: string): void {
  let opened: Opened;
  try {
    opened = open(file);
  } catch (error) {
    const reason = reasonOf(error);
    const ready: LogReady = { refused: reason, isHeld: fieldOf(error, 'errcode') === SQLITE_BUSY };
    return serveRpc(port, { ready, api: { close: () => undefined } });
  }
  const { identity, store, hasGaps } = opened;
  serveRpc(port, { ready: { identity, head: store.head, hasGaps } satisfies LogReady, api: served(opened) });
}

function open(file: string): Opened {
  const { database, hasGaps } = openLogFile(file);
  const { identity, position } = endOf(database);
  const store = new EmbeddedStore(database, position, () => freeBytes(dirname(file)));
  const headFile = new HeadFile(file, identity);
  // Its place on the disk is taken before anything is acknowledged, not when that is full.
  headFile.reached(position);
  return { identity, hasGaps, database, store, headFile, place: placeOf(file) };
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

/** Notices that the file under its name is no longer the one that is open: what is written then would be lost. */
interface Place {
  /** @throws {LogFault} `gone`: it is gone, or another lies there */
  assertHeld(): void;
}

function placeOf(file: string): Place {
  const opened = statSync(file);
  return {
    assertHeld() {
      if (isStill(opened, file)) return;
      throw new LogFault('gone', `"${file}" was removed or replaced while it was open`);
    },
  };
}

/** Whether a file is still the one that was opened; true as well if it cannot be checked, as in a folder without access. */
function isStill(opened: Stats, file: string): boolean {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.ino === opened.ino && found.dev === opened.dev;
  } catch {
    return true;
  }
}

interface Opened {
  readonly identity: string;
  readonly hasGaps: boolean;
  readonly database: DatabaseSyncInstance;
  readonly store: EmbeddedStore;
  readonly headFile: HeadFile;
  readonly place: Place;
}

function served({ database, store, headFile, place }: Opened): ServedLog {
  const read = pageReader(database);
  let broken: LogFault | null = null;

  /** A failed write is not retried: what a second try reports as durable may not be (lost page cache after fsync). */
  function written<T>(act: () => T): T {
    if (broken !== null) throw broken;
    try {
      return act();
    } catch (error) {
      broken = error instanceof LogFault ? error : new LogFault('broken', error);
      throw broken;
    }
  }

  function attempted<T>(act: () => T): T {
    if (broken !== null) throw broken;
    try {
      return act();
    } catch (error) {
      throw new LogFault(faultOf(error) ?? 'failed', error);
    }
  }

  return {
    append: (batch) =>
      written(() => {
        const outcomes = store.append(batch);
        place.assertHeld();
        headFile.reached(store.head);
        // After the answer: a checkpoint takes long, and the writers need not wait for it. The next call reports a failure.
        queueMicrotask(() => {
          try {
            written(() => store.checkpointWhenDue());
          } catch {
            // It is kept as `broken`.
          }
        });
        return { outcomes, isFull: store.isFull };
      }),
    page: (query) => attempted(() => read(query)),
    ping() {
      written(() => place.assertHeld());
      attempted(() => store.ping());
      if (store.isFull) throw new LogFault('full', 'there is little room');
    },
    look: () => written(() => place.assertHeld()),
    close: () =>
      attempted(() => {
        headFile.close();
        database.close();
      }),
  };
}
