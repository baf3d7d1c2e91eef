/** Threads, each of which serves its starter. */
import type { MessagePort } from 'node:worker_threads';
import { Worker } from 'node:worker_threads';

/** A thread as its starter sees it, which adds its listeners at once. */
export interface Thread {
  postMessage(message: unknown): void;
  on(event: 'message' | 'error', listener: (value: unknown) => void): unknown;
  /** It has ended, and let go of its files. */
  on(event: 'exit', listener: () => void): unknown;
}

/** What a thread's module exports as `serve`, and does by itself where it is started with data: serves until it closes the port. */
export type Serve<Data> = (port: MessagePort, data: Data) => void;

/** Starts a thread on its module and data, which are cloned. */
export type StartThread = (module: URL, data: unknown) => Thread;

/** A new thread: some 70 ms of a processor, most of it for what it imports. */
export const startThread: StartThread = (module, workerData) => new Worker(module, { workerData });
