/** The thread of the passage index: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveCalls } from '../system/worker-rpc.js';
import type { Counted, PassagesCall, PassagesSetup } from './index-client.js';
import { openPassagesStore } from './store.js';

const setup = workerData as PassagesSetup;
const store = openPassagesStore(setup);
const counted = (value: unknown): Counted => ({ value, count: store.count() });
serveCalls(parentPort, {
  ready: counted(store.standing),
  answerTo: (call) => counted(answerTo(call as PassagesCall)),
});

function answerTo(request: PassagesCall): unknown {
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
