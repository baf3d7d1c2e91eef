/** The stored read models as the main thread sees them: calls to the views worker. */
import { dirname } from 'node:path';
import { LogUnreadable } from '../../eventlog/port.js';
import type { StartThread } from '../../system/thread.js';
import { startThread } from '../../system/thread.js';
import { WorkerRpc } from '../../system/worker-rpc.js';
import type { DocumentRecord } from '../../documents/events.js';
import type { Position } from '../../eventlog/port.js';
import { keptPosition } from '../../eventlog/port.js';
import type { DuePause } from '../../run/live/deadlines.js';
import type { UnfinishedRun } from '../../run/state.js';
import type { RunFilter, RunListQuery } from '../run-list.js';
import type { Page, RunSummary } from '../run-summary.js';
import type { Corruption } from '../corrupt-runs.js';
import type { Stored } from './stored-row.js';
import type { FoldedLog, LogRefused } from './views-file.js';
import { ViewsFailed, ViewsFull, ViewsLost } from '../errors.js';
import type { KeyedRun } from './run-table.js';
import type { ViewsRows } from './views-store.js';
import { VIEWS_FULL } from './views-transactions.js';
import type { RenewableViews } from './views-renewal.js';
import { VIEWS_LOST } from './views-renewal.js';

export interface ViewsOptions {
  readonly file: string;
  readonly log: FoldedLog;
}

/** The worker's message once it is ready. */
export type ViewsReady = LogRefused | { readonly checkpoint: string | null };

export interface ViewsClient {
  /** Position the rows were folded to when the file was opened; null: nothing is folded yet. */
  readonly checkpoint: Position | null;
  /** @throws {ViewsFull} they are shown until the next write, and are not stored */
  write(rows: ViewsRows, checkpoint: Position | null): Promise<void>;
  find(runId: string): Promise<Stored<RunSummary> | null>;
  list(query: RunListQuery): Promise<readonly Stored<RunSummary>[]>;
  count(filter: RunFilter): Promise<number>;
  unfinished(): Promise<readonly UnfinishedRun[]>;
  paused(after: number): Promise<readonly KeyedRun[]>;
  deadlines(max: number): Promise<readonly DuePause[]>;
  blueprintIds(page: Page): Promise<readonly string[]>;
  blueprintRecords(ids: readonly string[]): Promise<readonly (Stored<string> | null)[]>;
  documents(page: Page): Promise<readonly Stored<DocumentRecord>[]>;
  document(id: string): Promise<Stored<DocumentRecord> | null>;
  corruptRuns(): Promise<readonly Corruption[]>;
  saveCorrupt(corruption: Corruption): Promise<void>;
  removeCorrupt(runId: string): Promise<void>;
  /** Replaces the views by an empty file, as after damage. @throws {ViewsLost} always */
  discard(): Promise<never>;
  close(): Promise<void>;
}

/**
 * Starts the views worker on a file; rejects when the file cannot be opened.
 *
 * @param onLost called once, when a damaged file was replaced by an empty one: everything must be folded again. Later
 *   writes go into the new file
 * @throws {LogUnreadable} the rows were folded from another log, or past its head, and the log has a file to refuse
 */
export async function openViews(
  options: ViewsOptions,
  onLost: () => void = () => undefined,
  start: StartThread = startThread,
): Promise<ViewsClient> {
  const thread = start(new URL('./views-worker.js', import.meta.url), options);
  const calls = new WorkerRpc<ViewsReady, RenewableViews>(thread, 'The stored read models');
  const ready = await calls.ready().catch((cause: unknown) => {
    throw new ViewsFailed(
      { file: options.file, reason: cause instanceof Error ? cause.message : String(cause) },
      { cause },
    );
  });
  if ('refused' in ready) {
    await calls.close();
    throw refusal(ready, dirname(options.file));
  }
  const checkpoint = ready.checkpoint === null ? null : keptPosition(ready.checkpoint);
  let isLost = false;
  const guarded = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      if (saysOf(error, VIEWS_FULL)) throw new ViewsFull();
      if (!saysOf(error, VIEWS_LOST)) throw error;
      if (!isLost) {
        isLost = true;
        onLost();
        await calls.call('accept');
      }
      throw new ViewsLost();
    }
  };
  return {
    checkpoint,
    write: (rows, position) => guarded(calls.call('write', rows, position)),
    find: (runId) => guarded(calls.call('find', runId)),
    list: (query) => guarded(calls.call('list', query)),
    count: (filter) => guarded(calls.call('count', filter)),
    unfinished: () => guarded(calls.call('unfinished')),
    paused: (after) => guarded(calls.call('paused', after)),
    deadlines: (max) => guarded(calls.call('deadlines', max)),
    blueprintIds: (page) => guarded(calls.call('blueprintIds', page)),
    blueprintRecords: (ids) => guarded(calls.call('blueprintRecords', ids)),
    documents: (page) => guarded(calls.call('documents', page)),
    document: (documentId) => guarded(calls.call('document', documentId)),
    corruptRuns: () => guarded(calls.call('corruptRuns')),
    saveCorrupt: (corruption) => guarded(calls.call('saveCorrupt', corruption)),
    removeCorrupt: (runId) => guarded(calls.call('removeCorrupt', runId)),
    // The rows that led to a second call are gone with the old file: discarding again would lose the new one.
    discard: () => (isLost ? Promise.reject(new ViewsLost()) : guarded(calls.call('discard'))),
    close: () => calls.close(),
  };
}

function saysOf(error: unknown, words: string): boolean {
  return error instanceof Error && error.message.includes(words);
}

function refusal({ refused, file }: LogRefused, views: string): LogUnreadable {
  const reason =
    refused === 'another'
      ? `it is not the log that "${views}" was made from: restore that one, or delete that folder to go on with this one`
      : `it ends before "${views}", which was made from it: restore all of it, or delete that folder to go on with the rest`;
  return new LogUnreadable({ file, reason });
}
