/** The stored read models as the main thread sees them: calls to the views worker. */
import { Worker } from 'node:worker_threads';
import type { DocumentRecord } from '../library/document-record.js';
import type { Position } from '../log/port.js';
import type { UnfinishedRun } from '../run/state.js';
import type { Page, RunSummary } from './run-summary.js';
import type { Damage } from './damaged-runs.js';
import type { ViewsRows } from './views-store.js';

export interface ViewsSetup {
  readonly file: string;
  readonly log: { readonly identity: string; readonly head: Position | null };
}

type Call =
  | { readonly call: 'write'; readonly rows: ViewsRows; readonly checkpoint: Position | null }
  | { readonly call: 'find'; readonly runId: string }
  | { readonly call: 'list'; readonly page: Page }
  | { readonly call: 'unfinished' }
  | { readonly call: 'blueprintIds'; readonly page: Page }
  | { readonly call: 'blueprintRecords'; readonly ids: readonly string[] }
  | { readonly call: 'documents'; readonly page: Page }
  | { readonly call: 'document'; readonly documentId: string }
  | { readonly call: 'damagedRuns' }
  | { readonly call: 'saveDamaged'; readonly damage: Damage }
  | { readonly call: 'close' };

export type ViewsRequest = Call & { readonly id: number };

export type ViewsAnswer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string };

export interface ViewsClient {
  /** Position the rows were folded to when the file was opened; null: nothing is folded yet. */
  readonly checkpoint: Position | null;
  write(rows: ViewsRows, checkpoint: Position | null): Promise<void>;
  find(runId: string): Promise<RunSummary | null>;
  list(page: Page): Promise<readonly RunSummary[]>;
  unfinished(): Promise<readonly UnfinishedRun[]>;
  blueprintIds(page: Page): Promise<readonly string[]>;
  blueprintRecords(ids: readonly string[]): Promise<readonly (string | null)[]>;
  documents(page: Page): Promise<readonly DocumentRecord[]>;
  document(id: string): Promise<DocumentRecord | null>;
  damagedRuns(): Promise<readonly Damage[]>;
  saveDamaged(damage: Damage): Promise<void>;
  close(): Promise<void>;
}

/** Starts the views worker on a file; rejects when the file cannot be opened. */
export async function openViews(setup: ViewsSetup): Promise<ViewsClient> {
  const worker = new Worker(new URL('./views-worker.js', import.meta.url), { workerData: setup });
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  let failure: Error | null = null;

  worker.on('message', (answer: ViewsAnswer) => {
    const caller = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (answer.ok) caller?.resolve(answer.value);
    else caller?.reject(new Error(`The stored read models failed: ${answer.message}`));
  });
  const fail = (error: Error): void => {
    failure ??= error;
    for (const caller of waiting.values()) caller.reject(error);
    waiting.clear();
  };
  worker.on('error', (error) => fail(error instanceof Error ? error : new Error(String(error))));
  worker.on('exit', () => fail(new Error('The views worker has stopped')));

  const answerOf = <T>(id: number): Promise<T> =>
    new Promise((resolve, reject) => {
      if (failure !== null) return reject(failure);
      // The worker answers each call with what views-store.ts returns for it.
      waiting.set(id, { resolve: (value) => resolve(value as T), reject });
    });
  const call = <T>(request: Call): Promise<T> => {
    lastId += 1;
    const answered = answerOf<T>(lastId);
    worker.postMessage({ ...request, id: lastId } satisfies ViewsRequest);
    return answered;
  };

  const checkpoint = await answerOf<Position | null>(0);
  return {
    checkpoint,
    write: (rows, position) => call({ call: 'write', rows, checkpoint: position }),
    find: (runId) => call({ call: 'find', runId }),
    list: (page) => call({ call: 'list', page }),
    unfinished: () => call({ call: 'unfinished' }),
    blueprintIds: (page) => call({ call: 'blueprintIds', page }),
    blueprintRecords: (ids) => call({ call: 'blueprintRecords', ids }),
    documents: (page) => call({ call: 'documents', page }),
    document: (documentId) => call({ call: 'document', documentId }),
    damagedRuns: () => call({ call: 'damagedRuns' }),
    saveDamaged: (damage) => call({ call: 'saveDamaged', damage }),
    async close() {
      if (failure !== null) return;
      await call({ call: 'close' });
      await worker.terminate();
    },
  };
}
