/** The thread of the embedded log: one request after the other, each batch of appends one durable transaction. */
import { parentPort, workerData } from 'node:worker_threads';
import type { AppendResult, AppendRow, RowsPage } from './embedded-store.js';
import { openStore } from './embedded-store.js';

export type LogRequest = { readonly id: number } & (
  | { readonly call: 'append'; readonly batch: readonly AppendRow[] }
  | {
      readonly call: 'readStream';
      readonly stream: string;
      readonly range: { from: number; isForwards: boolean; max: number };
    }
  | { readonly call: 'readAfter'; readonly position: number }
  | { readonly call: 'ping' }
  | { readonly call: 'close' }
);

export type LogAnswer = { readonly id: number } & (
  | { readonly kind: 'opened'; readonly identity: string; readonly head: number }
  | { readonly kind: 'appended'; readonly results: readonly AppendResult[] }
  | { readonly kind: 'page'; readonly page: RowsPage }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string }
);

const { file }: { readonly file: string } = workerData;
const port = parentPort;
if (port === null) throw new Error('The log worker runs as a worker thread only');
const store = openStore(file);
port.postMessage({ id: 0, kind: 'opened', identity: store.identity(), head: store.head() } satisfies LogAnswer);

/** After a failed write nothing about the file can be trusted: it is not touched again. */
let broken: string | null = null;

port.on('message', (request: LogRequest) => {
  port.postMessage(answerTo(request));
  if (request.call === 'close') port.close();
});

function answerTo(request: LogRequest): LogAnswer {
  const { id } = request;
  try {
    if (request.call === 'close') {
      store.close();
      return { id, kind: 'done' };
    }
    if (broken !== null) return { id, kind: 'failed', message: broken };
    switch (request.call) {
      case 'append':
        return { id, kind: 'appended', results: store.appendAll(request.batch) };
      case 'readStream':
        return { id, kind: 'page', page: store.readStream(request.stream, request.range) };
      case 'readAfter':
        return { id, kind: 'page', page: store.readAfter(request.position) };
      case 'ping':
        store.ping();
        return { id, kind: 'done' };
      default:
        return request satisfies never;
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (request.call === 'append') broken = message;
    return { id, kind: 'failed', message };
  }
}
