/** The worker thread that owns the embedded log's file: answers requests one after the other, in order. */
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { openLogFile } from './file.js';
import type { Reply, Request } from './messages.js';
import { isRequest } from './messages.js';
import { pageReader } from './pages.js';
import { EmbeddedStore } from './store.js';

const file: unknown = workerData;
if (parentPort !== null && typeof file === 'string') serve(parentPort, file);

function serve(port: MessagePort, file: string): void {
  const reply = (message: Reply): void => port.postMessage(message);
  try {
    const database = openLogFile(file);
    const store = new EmbeddedStore(database);
    const answer = answerer(database, store, reply);
    port.on('message', (message: unknown) => {
      if (!isRequest(message)) throw new TypeError('The event log sent its thread no request');
      answer(message);
    });
    reply({ kind: 'opened', identity: store.identity(), head: store.head });
  } catch (error) {
    const reason = reasonOf(error);
    reply({ kind: 'refused', held: reason.includes('database is locked'), reason });
  }
}

function answerer(database: DatabaseSyncInstance, store: EmbeddedStore, reply: (message: Reply) => void) {
  const read = pageReader(database);
  let broken: string | null = null;

  /** A failed write is not retried: what a second try reports as durable may not be (lost page cache after fsync). */
  function write(act: () => void): void {
    try {
      act();
    } catch (error) {
      broken = reasonOf(error);
      reply({ kind: 'broken', reason: broken });
    }
  }

  function attempt(act: () => Reply): void {
    try {
      reply(act());
    } catch (error) {
      reply({ kind: 'failed', reason: reasonOf(error) });
    }
  }

  return (request: Request): void => {
    if (broken !== null) return reply({ kind: 'broken', reason: broken });
    switch (request.kind) {
      case 'append':
        return write(() => {
          reply({ kind: 'appended', outcomes: store.append(request.batch) });
          store.checkpointWhenDue();
        });
      case 'page':
        return attempt(() => ({ kind: 'page', page: read(request.query) }));
      case 'ping':
        return attempt(() => {
          store.identity();
          return { kind: 'done' };
        });
      case 'close':
        return attempt(() => {
          database.close();
          return { kind: 'done' };
        });
      default:
        return request satisfies never;
    }
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
