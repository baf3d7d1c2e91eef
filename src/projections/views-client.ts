/** The stored read models as the main thread sees them: calls to the views worker. */
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { LogUnreadable } from '../eventlog/port.js';
import { WorkerRpc } from '../system/worker-rpc.js';
import type { DocumentRecord } from '../documents/events.js';
import type { Position } from '../eventlog/port.js';
import type { UnfinishedRun } from '../run/state.js';
import type { Page, RunSummary } from './run-summary.js';
import type { Corruption } from './corrupt-runs.js';
import type { Stored } from './stored-row.js';
import type { FoldedLog, LogRefused } from './views-file.js';
import type { KeyedRun, ViewsRows } from './views-store.js';

export interface ViewsOptions {
  readonly file: string;
  readonly log: FoldedLog;
}

/** The worker's message once it is ready. */
export type ViewsReady = LogRefused | { readonly checkpoint: string | null };

export type ViewsCall =
  | { readonly call: 'write'; readonly rows: ViewsRows; readonly checkpoint: Position | null }
  | { readonly call: 'find'; readonly runId: string }
  | { readonly call: 'list'; readonly page: Page }
  | { readonly call: 'unfinished' }
  | { readonly call: 'paused'; readonly after: number }
  | { readonly call: 'blueprintIds'; readonly page: Page }
  | { readonly call: 'blueprintRecords'; readonly ids: readonly string[] }
  | { readonly call: 'documents'; readonly page: Page }
  | { readonly call: 'document'; readonly documentId: string }
  | { readonly call: 'corruptRuns' }
  | { readonly call: 'saveCorrupt'; readonly corruption: Corruption }
  | { readonly call: 'close' };

export interface ViewsClient {
  /** Position the rows were folded to when the file was opened; null: nothing is folded yet. */
  readonly checkpoint: Position | null;
  write(rows: ViewsRows, checkpoint: Position | null): Promise<void>;
  find(runId: string): Promise<RunSummary | null>;
  list(page: Page): Promise<readonly Stored<RunSummary>[]>;
  unfinished(): Promise<readonly UnfinishedRun[]>;
  paused(after: number): Promise<readonly KeyedRun[]>;
  blueprintIds(page: Page): Promise<readonly string[]>;
  blueprintRecords(ids: readonly string[]): Promise<readonly (Stored<string> | null)[]>;
  documents(page: Page): Promise<readonly Stored<DocumentRecord>[]>;
  document(id: string): Promise<DocumentRecord | null>;
  corruptRuns(): Promise<readonly Corruption[]>;
  saveCorrupt(corruption: Corruption): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts the views worker on a file; rejects when the file cannot be opened.
 *
 * @throws {LogUnreadable} the rows were folded from another log, or past its head, and the log has a file to refuse
 */
export async function openViews(options: ViewsOptions): Promise<ViewsClient> {
  const worker = new Worker(new URL('./views-worker.js', import.meta.url), { workerData: options });
  const calls = new WorkerRpc<ViewsCall>(worker, 'The stored read models');
  // The worker answers each call with what views-store.ts returns for it.
  const call = async <T>(request: ViewsCall): Promise<T> => (await calls.call(request)) as T;
  const ready = (await calls.ready()) as ViewsReady;
  if ('refused' in ready) {
    await calls.close({ call: 'close' });
    throw refusal(ready, dirname(options.file));
  }
  const checkpoint = ready.checkpoint as Position | null;
  return {
    checkpoint,
    write: (rows, position) => call({ call: 'write', rows, checkpoint: position }),
    find: (runId) => call({ call: 'find', runId }),
    list: (page) => call({ call: 'list', page }),
    unfinished: () => call({ call: 'unfinished' }),
    paused: (after) => call({ call: 'paused', after }),
    blueprintIds: (page) => call({ call: 'blueprintIds', page }),
    blueprintRecords: (ids) => call({ call: 'blueprintRecords', ids }),
    documents: (page) => call({ call: 'documents', page }),
    document: (documentId) => call({ call: 'document', documentId }),
    corruptRuns: () => call({ call: 'corruptRuns' }),
    saveCorrupt: (corruption) => call({ call: 'saveCorrupt', corruption }),
    close: () => calls.close({ call: 'close' }),
  };
}

function refusal({ refused, file }: LogRefused, views: string): LogUnreadable {
  const reason =
    refused === 'another'
      ? `it is not the log that "${views}" was made from: restore that one, or delete that folder to go on with this one`
      : `it ends before "${views}", which was made from it: restore all of it, or delete that folder to go on with the rest`;
  return new LogUnreadable({ file, reason });
}
