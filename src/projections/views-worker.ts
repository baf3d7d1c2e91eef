/** The thread of the stored read models: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveRpc } from '../system/worker-rpc.js';
import type { ViewsCall, ViewsReady, ViewsOptions } from './views-client.js';
import type { ViewsStore } from './views-store.js';
import { openViewsFile } from './views-file.js';
import { viewsStore } from './views-store.js';

const options = workerData as ViewsOptions;
const opened = openViewsFile(options.file, options.log);
if ('refused' in opened) serveRpc(parentPort, { ready: opened, answerTo: () => undefined });
else serve(viewsStore(opened));

function serve(store: ViewsStore): void {
  const ready: ViewsReady = { checkpoint: store.checkpoint };
  serveRpc(parentPort, { ready, answerTo: (call) => answerTo(store, call as ViewsCall) });
}

function answerTo(store: ViewsStore, request: ViewsCall): unknown {
  switch (request.call) {
    case 'write':
      return store.write(request.rows, request.checkpoint);
    case 'find':
      return store.find(request.runId);
    case 'list':
      return store.list(request.page);
    case 'unfinished':
      return store.unfinished();
    case 'paused':
      return store.paused(request.after);
    case 'blueprintIds':
      return store.blueprintIds(request.page);
    case 'blueprintRecords':
      return store.blueprintRecords(request.ids);
    case 'documents':
      return store.documents(request.page);
    case 'document':
      return store.document(request.documentId);
    case 'corruptRuns':
      return store.corruptRuns();
    case 'saveCorrupt':
      return store.saveCorrupt(request.corruption);
    case 'close':
      return store.close();
    default:
      return request satisfies never;
  }
}
