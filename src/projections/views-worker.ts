/** The thread of the stored read models: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveCalls } from '../worker-calls.js';
import type { ViewsCall, ViewsSetup } from './views-client.js';
import { openViewsStore } from './views-store.js';

const setup = workerData as ViewsSetup;
const store = openViewsStore(setup.file, setup.log);
serveCalls(parentPort, { ready: store.checkpoint, answerTo: (call) => answerTo(call as ViewsCall) });

function answerTo(request: ViewsCall): unknown {
  switch (request.call) {
    case 'write':
      return store.write(request.rows, request.checkpoint);
    case 'find':
      return store.find(request.runId);
    case 'list':
      return store.list(request.page);
    case 'unfinished':
      return store.unfinished();
    case 'blueprintIds':
      return store.blueprintIds(request.page);
    case 'blueprintRecords':
      return store.blueprintRecords(request.ids);
    case 'documents':
      return store.documents(request.page);
    case 'document':
      return store.document(request.documentId);
    case 'damagedRuns':
      return store.damagedRuns();
    case 'saveDamaged':
      return store.saveDamaged(request.damage);
    case 'close':
      return store.close();
    default:
      return request satisfies never;
  }
}
