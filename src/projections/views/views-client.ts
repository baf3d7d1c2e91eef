/** The stored views on the main thread: calls to their worker, which recreates the file after a failure. */
import { dirname } from 'node:path';
import type { Position } from '../../eventlog/port.js';
import { positionFromText, LogUnreadable } from '../../eventlog/port.js';
import { DerivedFile, REST_MS } from '../../system/derived-file.js';
import type { System } from '../../system/system.js';
import { WorkerRpc } from '../../system/worker-rpc.js';
import type { Corruption } from '../corrupt-runs.js';
import { ViewsFailed, ViewsFull, ViewsLost } from '../errors.js';
import type { FoldedLog, LogRefused } from './views-file.js';
import type { ViewsRows, ViewsStore, ViewsTables } from './views-store.js';
import { reasonOf } from '../../system/untrusted.js';

export interface ViewsOptions {
  readonly file: string;
  readonly log: FoldedLog;
}

/** The task of the worker. */
export interface ViewsTask extends ViewsOptions {
  /** Whether the file failed and the worker must recreate it. */
  readonly isLost: boolean;
}

/** The worker's message once it is ready. */
export type ViewsReady =
  | LogRefused
  | { readonly checkpoint: string | null; readonly corruptRuns: readonly Corruption[] };

export interface ViewsDeps {
  readonly system: Pick<System, 'after'>;
  /** Called with the cause when the views have failed: everything must be folded again, into a new file. */
  readonly onLost: (cause: unknown) => void;
  /** The corrupt runs, to store in a new file. */
  readonly corruptRuns: () => readonly Corruption[];
  /** Called when the file could not be recreated, before the next attempt. */
  readonly onFault: (error: unknown) => void;
}

/** The functions of the store, called in its thread. Each throws ViewsLost when the views fail. */
type ViewsCalls = {
  readonly [Name in Exclude<keyof ViewsTables, 'write'>]: (
    ...given: Parameters<ViewsTables[Name]>
  ) => Promise<ReturnType<ViewsTables[Name]>>;
};

export interface ViewsClient extends ViewsCalls {
  /** Position up to which the rows were folded when the file was opened, or null if nothing was folded. */
  readonly checkpoint: Position | null;
  /** The runs that the file named as corrupt when it was opened. */
  readonly corruptRuns: readonly Corruption[];
  /** False while the file is recreated. Calls wait for that, at most a second. */
  readonly isOpen: boolean;
  write(rows: ViewsRows, checkpoint: Position | null): Promise<void>;
  close(): Promise<void>;
}

type Thread = WorkerRpc<ViewsReady, ViewsStore>;

/**
 * Starts the views worker on a file. A file that cannot be used is recreated.
 *
 * @throws {ViewsFailed} the file can be neither opened nor created
 * @throws {LogUnreadable} the rows were folded from another log, or past its head, and the log has a file to refuse
 */
export async function openViews(options: ViewsOptions, deps: ViewsDeps): Promise<ViewsClient> {
  const { thread, ready } = await startedThread({ ...options, isLost: false }).catch((cause: unknown) => {
    throw failure(options.file, cause);
  });
  if ('refused' in ready) {
    await thread.close();
    throw refusal(ready, dirname(options.file));
  }
  const views = derivedFile(thread, options, deps);
  return {
    checkpoint: ready.checkpoint === null ? null : positionFromText(ready.checkpoint),
    corruptRuns: ready.corruptRuns,
    get isOpen() {
      return views.isOpen;
    },
    write: (rows, checkpoint) => views.ask((thread) => thread.call('write', rows, checkpoint)),
    find: (runId) => views.ask((thread) => thread.call('find', runId)),
    expired: (days, now, max) => views.ask((thread) => thread.call('expired', days, now, max)),
    families: (ids) => views.ask((thread) => thread.call('families', ids)),
    list: (query) => views.ask((thread) => thread.call('list', query)),
    count: (filter) => views.ask((thread) => thread.call('count', filter)),
    counts: (filter) => views.ask((thread) => thread.call('counts', filter)),
    overview: (query) => views.ask((thread) => thread.call('overview', query)),
    unfinished: () => views.ask((thread) => thread.call('unfinished')),
    paused: (after) => views.ask((thread) => thread.call('paused', after)),
    deadlines: (max) => views.ask((thread) => thread.call('deadlines', max)),
    blueprintIds: (page) => views.ask((thread) => thread.call('blueprintIds', page)),
    blueprintRecords: (ids) => views.ask((thread) => thread.call('blueprintRecords', ids)),
    documents: (page) => views.ask((thread) => thread.call('documents', page)),
    document: (id) => views.ask((thread) => thread.call('document', id)),
    endedWithoutLeaf: (max) => views.ask((thread) => thread.call('endedWithoutLeaf', max)),
    leafOf: (runId) => views.ask((thread) => thread.call('leafOf', runId)),
    erasedAs: (what, id) => views.ask((thread) => thread.call('erasedAs', what, id)),
    zeroErased: () => views.ask((thread) => thread.call('zeroErased')),
    saveCorrupt: (corruption) => views.ask((thread) => thread.call('saveCorrupt', corruption)),
    removeCorrupt: (runId) => views.ask((thread) => thread.call('removeCorrupt', runId)),
    close: () => views.close(),
  };
}

function derivedFile(thread: Thread, options: ViewsOptions, deps: ViewsDeps): DerivedFile<Thread> {
  const { system, onLost, onFault } = deps;
  return new DerivedFile<Thread>(thread, {
    system,
    onLost,
    recreate: () => recreated(options, deps),
    onFault: (cause) => onFault(failure(options.file, cause, OUTCOME)),
    lost: (given) => new ViewsLost(given),
    harmless: (cause) => (cause.code === 'views.full' ? new ViewsFull({ cause }) : null),
  });
}

const OUTCOME = `; trying again in ${REST_MS / 1_000} s, lists answer 503 until then`;

async function recreated(options: ViewsOptions, deps: ViewsDeps): Promise<Thread> {
  const { thread } = await startedThread({ ...options, isLost: true });
  try {
    for (const each of deps.corruptRuns()) await thread.call('saveCorrupt', each);
    return thread;
  } catch (cause) {
    await thread.close().catch(() => undefined);
    throw cause;
  }
}

async function startedThread(task: ViewsTask): Promise<{ readonly thread: Thread; readonly ready: ViewsReady }> {
  const thread: Thread = new WorkerRpc(new URL('./views-worker.js', import.meta.url), task, 'Read models');
  return { thread, ready: await thread.ready() };
}

function failure(file: string, cause: unknown, outcome = ''): ViewsFailed {
  const reason = reasonOf(cause);
  return new ViewsFailed({ file, reason: reason + outcome }, { cause });
}

function refusal({ refused, file }: LogRefused, views: string): LogUnreadable {
  const reason =
    refused === 'another'
      ? `it is not the log that "${views}" was made from: restore that one, or delete that folder to go on with this one`
      : `it ends before "${views}", which was made from it: restore all of it, or delete that folder to go on with the rest`;
  return new LogUnreadable({ file, reason });
}
