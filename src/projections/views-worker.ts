/** The thread of the stored read models: answers one request after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import type { ViewsAnswer, ViewsRequest, ViewsSetup } from './views-client.js';
import { openViewsStore } from './views-store.js';

const setup = workerData as ViewsSetup;
const store = openViewsStore(setup.file, setup.log);
const port = parentPort;
if (port === null) throw new Error('The views worker runs as a worker thread only');

port.on('message', (request: ViewsRequest) => {
  let answer: ViewsAnswer;
  try {
    answer = { id: request.id, ok: true, value: answerTo(request) };
  } catch (error) {
    answer = { id: request.id, ok: false, message: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(answer);
  if (request.call === 'close') port.close();
});
port.postMessage({ id: 0, ok: true, value: store.checkpoint } satisfies ViewsAnswer);

function answerTo(request: ViewsRequest): unknown {
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
