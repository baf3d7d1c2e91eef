/** The thread of the passage index: answers one request after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import type { PassagesAnswer, PassagesRequest, PassagesSetup } from './passages-index.js';
import { openPassagesStore } from './passages-store.js';

const setup = workerData as PassagesSetup;
const store = openPassagesStore(setup);
const port = parentPort;
if (port === null) throw new Error('The passages worker runs as a worker thread only');

port.on('message', (request: PassagesRequest) => {
  let answer: PassagesAnswer;
  try {
    answer = { id: request.id, ok: true, value: answerTo(request), count: store.count() };
  } catch (error) {
    answer = { id: request.id, ok: false, message: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(answer);
  if (request.call === 'close') port.close();
});
port.postMessage({ id: 0, ok: true, value: store.checkpoint, count: store.count() } satisfies PassagesAnswer);

function answerTo(request: PassagesRequest): unknown {
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
