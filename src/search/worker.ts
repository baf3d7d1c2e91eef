/** The thread of the chunk index: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveRpc } from '../system/worker-rpc.js';
import type { Counted, SearchCall, SearchIndexOptions } from './index-client.js';
import { openSearchStore } from './store.js';

const options = workerData as SearchIndexOptions;
const store = openSearchStore(options);
const counted = (value: unknown): Counted => ({ value, count: store.count() });
serveRpc(parentPort, {
  ready: counted(store.progress),
  answerTo: (call) => counted(answerTo(call as SearchCall)),
});

function answerTo(request: SearchCall): unknown {
  switch (request.call) {
    case 'write':
      return store.write(request.change);
    case 'search':
      return store.search(request.query);
    case 'close':
      return store.close();
    default:
      return request satisfies never;
  }
}
