/** The worker thread of the embedded log: owns its file, appends each batch in one durable transaction. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Stats } from 'node:fs';
import { statSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { faultOf } from './faults.js';
import { endOf, openLogFile } from './file.js';
import { HeadFile } from './head-file.js';
import type { Reply, Request } from './messages.js';
import { isRequest } from './messages.js';
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import { pageReader } from './pages.js';
import { EmbeddedStore } from './store.js';
import { reasonOf } from '../../system/untrusted.js';

/** Time between two looks at whether the file is still there, in milliseconds. */
const LOOK_MS = 1_000;

const file: unknown = workerData;
// Else it was imported for `serve`.
if (parentPort !== null && typeof file === 'string') serve(parentPort, file);

/** Serves the log in a file over a message port. */
export function serve(port: MessagePort, file: string): void {
  const reply = (message: Reply): void => port.postMessage(message);
  try {
    const { database, hasGaps } = openLogFile(file);
    const { identity, position } = endOf(database);
    const store = new EmbeddedStore(database, position, () => freeBytes(dirname(file)));
    const headFile = new HeadFile(file, identity);
    // Its place on the disk is taken before anything is acknowledged, not when that is full.
    headFile.reached(position);
    const answer = answerer({ database, store, headFile, place: placeOf(file) }, port);
    port.on('message', (message: unknown) => {
      if (!isRequest(message)) throw new TypeError('The event log sent its thread no request');
      answer(message);
      // Without its port the thread has nothing to wait for, and ends.
      if (message.kind === 'close') port.close();
    });
    reply({ kind: 'opened', identity, head: position, hasGaps });
  } catch (error) {
    const reason = reasonOf(error);
    reply({ kind: 'refused', held: reason.includes('database is locked'), reason });
    port.close();
  }
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

class FileGone extends Error {}

/** Notices that the file under its name is no longer the one that is open: what is written then would be lost. */
interface Place {
  /** @throws {Error} it is gone, or another lies there */
  assertHeld(): void;
}

function placeOf(file: string): Place {
  const opened = statSync(file);
  return {
    assertHeld() {
      if (isStill(opened, file)) return;
      throw new FileGone(`"${file}" was removed or replaced while it was open`);
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
  readonly database: DatabaseSyncInstance;
  readonly store: EmbeddedStore;
  readonly headFile: HeadFile;
  readonly place: Place;
}

function answerer({ database, store, headFile, place }: Opened, port: MessagePort) {
  const reply = (message: Reply): void => port.postMessage(message);
  const read = pageReader(database);
  let broken: Extract<Reply, { kind: 'broken' }> | null = null;

  /** A failed write is not retried: what a second try reports as durable may not be (lost page cache after fsync). */
  function write(act: () => void): void {
    try {
      act();
    } catch (error) {
      broken = { kind: 'broken', isGone: error instanceof FileGone, reason: reasonOf(error) };
      reply(broken);
    }
  }

  // Also while the log is idle: another process may already have begun a log in its place.
  const look = setInterval(() => broken ?? write(() => place.assertHeld()), LOOK_MS).unref();
  port.once('close', () => clearInterval(look));

  function attempt(act: () => Reply): void {
    try {
      reply(act());
    } catch (error) {
      reply({ kind: 'failed', fault: faultOf(error), reason: reasonOf(error) });
    }
  }

  return (request: Request): void => {
    if (broken !== null) return reply(broken);
    switch (request.kind) {
      case 'append':
        return write(() => {
          const outcomes = store.append(request.batch);
          place.assertHeld();
          headFile.reached(store.head);
          reply({ kind: 'appended', outcomes, isFull: store.isFull });
          store.checkpointWhenDue();
        });
      case 'page':
        return attempt(() => ({ kind: 'page', page: read(request.query) }));
      case 'ping':
        return write(() => {
          place.assertHeld();
          attempt(() => {
            store.ping();
            return store.isFull ? { kind: 'failed', fault: 'full', reason: 'there is little room' } : { kind: 'done' };
          });
        });
      case 'close':
        return attempt(() => {
          headFile.close();
          database.close();
          return { kind: 'done' };
        });
      default:
        return request satisfies never;
    }
  };
}
