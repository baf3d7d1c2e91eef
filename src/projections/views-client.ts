/** The stored read models as the main thread sees them: calls to the views worker. */
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { LogUnreadable } from '../log/unreadable.js';
import type { Remote } from '../worker-calls.js';
import { WorkerCalls } from '../worker-calls.js';
import type { Position } from '../log/port.js';
import type { FoldedLog, LogRefused } from './views-file.js';
import type { ViewsStore } from './views-store.js';

export interface ViewsSetup {
  readonly file: string;
  readonly log: FoldedLog;
}

/** What the worker tells of itself once it is ready. */
export type ViewsReady = LogRefused | { readonly checkpoint: string | null };

/** The store, asked over there. */
export interface ViewsClient extends Remote<ViewsStore> {
  /** Position the rows were folded to when the file was opened; null: nothing is folded yet. */
  readonly checkpoint: Position | null;
  close(): Promise<void>;
}

/**
 * Starts the views worker on a file; rejects when the file cannot be opened.
 *
 * @throws {LogUnreadable} when the rows were folded from another log, or past its head, and it is to be refused then
 */
export async function openViews(setup: ViewsSetup): Promise<ViewsClient> {
  const worker = new Worker(new URL('./views-worker.js', import.meta.url), { workerData: setup });
  const calls = new WorkerCalls<ViewsStore, ViewsReady>(worker, 'The stored read models');
  const { service, told } = await calls.ready();
  if ('refused' in told) {
    await calls.close();
    throw refusal(told, dirname(setup.file));
  }
  return { ...service, checkpoint: told.checkpoint as Position | null, close: () => calls.close() };
}

function refusal({ refused, file }: LogRefused, views: string): LogUnreadable {
  const reason =
    refused === 'another'
      ? `it is not the log that "${views}" was made from: restore that one, or delete that folder to go on with this one`
      : `it ends before "${views}", which was made from it: restore all of it, or delete that folder to go on with the rest`;
  return new LogUnreadable({ file, reason });
}
