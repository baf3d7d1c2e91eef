/** The embedded log's connection to its worker: requests go out, replies come back in the same order. */
import { Worker } from 'node:worker_threads';
import { dirname } from 'node:path';
import { DataDirHeld, LogUnavailable } from '../errors.js';
import { LogUnreadable } from '../port.js';
import type { Reply, Request } from './messages.js';
import { isReply } from './messages.js';

/** Most requests without a reply; further reads are refused. Appends come in batches, one at a time. */
const MAX_REQUESTS = 10_000;

interface Awaited {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: LogUnavailable) => void;
}

/** Owns the worker. Once it has failed, all requests, pending and later ones, are refused for good. */
export class EmbeddedLink {
  readonly #worker: Worker;
  #awaited: Awaited[] = [];
  #fault: LogUnavailable | null = null;
  #onFault: (fault: LogUnavailable) => void = () => undefined;

  constructor(file: string) {
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: file });
    this.#worker.on('message', (message: unknown) => this.#receive(message));
    this.#worker.on('error', (cause: unknown) => this.#fail(cause));
    this.#worker.on('exit', () => this.#fail(new Error("The event log's thread has ended")));
  }

  /**
   * Resolves once the worker has opened the file.
   *
   * @throws {DataDirHeld} another process has it open
   * @throws {LogUnreadable} it is unusable
   */
  async opened(file: string): Promise<Extract<Reply, { kind: 'opened' }>> {
    const reply = await this.#next();
    if (reply.kind === 'opened') return reply;
    await this.end();
    if (reply.kind !== 'refused') throw new Error(`Cannot open the event log "${file}": ${reply.kind}`);
    if (reply.held) throw new DataDirHeld({ path: dirname(file), holder: 'another process' });
    throw new LogUnreadable({ file, reason: reply.reason });
  }

  /** Calls back when the worker or its storage fails. */
  onFault(callback: (fault: LogUnavailable) => void): void {
    this.#onFault = callback;
  }

  /** @throws {LogUnavailable} the read failed, too many requests wait, or the log has failed for good */
  async request(request: Request): Promise<Reply> {
    if (this.#fault !== null) throw this.#fault;
    const isRead = request.kind === 'page' || request.kind === 'ping';
    if (isRead && this.#awaited.length >= MAX_REQUESTS) throw new LogUnavailable();
    this.#worker.postMessage(request);
    const reply = await this.#next();
    if (reply.kind === 'failed') throw new LogUnavailable({ cause: new Error(reply.reason) });
    return reply;
  }

  /** Ends the thread. */
  async end(): Promise<void> {
    this.#onFault = () => undefined;
    await this.#worker.terminate();
  }

  #next(): Promise<Reply> {
    return new Promise((resolve, reject) => this.#awaited.push({ resolve, reject }));
  }

  #receive(message: unknown): void {
    if (!isReply(message)) return this.#fail(new TypeError("The event log's thread sent no answer"));
    if (message.kind === 'broken') return this.#fail(new Error(message.reason));
    this.#awaited.shift()?.resolve(message);
  }

  #fail(cause: unknown): void {
    if (this.#fault !== null) return;
    this.#fault = new LogUnavailable({ cause });
    const awaited = this.#awaited;
    this.#awaited = [];
    for (const { reject } of awaited) reject(this.#fault);
    this.#onFault(this.#fault);
  }
}
