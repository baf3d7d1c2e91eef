/**
 * Threads that are used again. To boot one and to import what runs in it is nine tenths of what a start of the service
 * costs, and the tests start it a thousand times. They are threads as ever, each with one file at a time.
 */
import { EventEmitter } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { StartThread, Thread } from '../../src/system/thread.js';
import type { WarmReport, WarmTask } from './warm-thread.js';

const HOST = new URL('./warm-thread.js', import.meta.url);

/** Of one module, kept for later. */
const MAX_IDLE = 3;

/** By what they have imported. */
const idle = new Map<string, Worker[]>();

/** Serves in a thread that has served before, where one is free. */
export const startWarmThread: StartThread = (module, data) => {
  const worker = idle.get(module.href)?.pop() ?? new Worker(HOST);
  // While nobody uses it, it keeps no process alive.
  worker.ref();
  const { port1: near, port2: port } = new MessageChannel();
  const events = new EventEmitter();
  const closed = new Promise<void>((resolve) => near.once('close', resolve));
  near.on('message', (message: unknown) => events.emit('message', message));
  worker.on('message', (report: WarmReport) => {
    if (report.kind === 'failed') events.emit('error', report.error);
    else
      void closed.then(() => {
        setFree(worker, module.href);
        events.emit('exit');
      });
  });
  worker.once('error', (error) => events.emit('error', error));
  worker.once('exit', () => events.emit('exit'));
  worker.postMessage({ module: module.href, data, port } satisfies WarmTask, [port]);
  return {
    postMessage: (message) => near.postMessage(message),
    on: (event: string, listener: (value: unknown) => void) => events.on(event, listener),
  } satisfies Thread;
};

function setFree(worker: Worker, module: string): void {
  for (const name of ['message', 'error', 'exit'] as const) worker.removeAllListeners(name);
  const others = idle.get(module) ?? [];
  if (others.length >= MAX_IDLE) return worker.postMessage(null satisfies WarmTask);
  worker.unref();
  idle.set(module, [...others, worker]);
}
