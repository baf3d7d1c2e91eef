/**
 * A file that is folded from the log, behind the thread that serves it. One rule holds for every failure of a call: the
 * file is closed and deleted, and an empty one is created, into which everything is folded again.
 */
import { ServiceStopping } from '../errors.js';
import { inTime, wait } from './async/deadline.js';
import type { System } from './system.js';
import { CallFailed } from './worker-rpc.js';

/** Longest wait of a call for a file that is being recreated, in milliseconds: that takes a tenth of a second. */
const RECREATED_MS = 1_000;
/** Shortest time between two files, in milliseconds: a disk that fails again and again must not keep a core busy. */
export const REST_MS = 30_000;

export interface DerivedFileOptions<Thread> {
  readonly system: Pick<System, 'after'>;
  /** Starts a thread that deletes what lies in the file's place and creates an empty file. */
  readonly recreate: () => Promise<Thread>;
  /** Called when the file has failed, with the cause. Later calls reach the new file. */
  readonly onLost: (cause: unknown) => void;
  /** Called when the file could not be recreated; that is tried again after `REST_MS`. */
  readonly onFault: (cause: unknown) => void;
  /** The error of a call that the failure ends, or that finds no file. */
  readonly lost: (options?: ErrorOptions) => Error;
  /** The error of a call that failed without harm to the file, as on a full disk; null if the file is lost. */
  readonly harmless: (error: CallFailed) => Error | null;
}

/** Keeps a thread on the file, another one after each failure. */
export class DerivedFile<Thread extends { close(): Promise<void> }> {
  readonly #options: DerivedFileOptions<Thread>;
  readonly #stopping = new AbortController();
  /** Null while the file is being recreated. */
  #thread: Thread | null;
  #recreated: Promise<void> = Promise.resolve();
  #rested: Promise<void> = Promise.resolve();

  constructor(thread: Thread, options: DerivedFileOptions<Thread>) {
    this.#thread = thread;
    this.#options = options;
  }

  /** False while the file is being recreated: calls wait for that, at most a second. */
  get isOpen(): boolean {
    return this.#thread !== null;
  }

  /** @throws {ServiceStopping}, or what `lost` and `harmless` give */
  async ask<T>(question: (thread: Thread) => Promise<T>): Promise<T> {
    const thread = this.#thread ?? (await this.#newThread());
    try {
      return await question(thread);
    } catch (cause) {
      if (cause instanceof ServiceStopping) throw cause;
      const harmless = cause instanceof CallFailed ? this.#options.harmless(cause) : null;
      if (harmless !== null) throw harmless;
      this.#lose(thread, cause);
      throw this.#options.lost({ cause });
    }
  }

  async close(): Promise<void> {
    this.#stopping.abort(new ServiceStopping());
    if (this.#thread === null) await this.#recreated;
    await this.#thread?.close();
  }

  async #newThread(): Promise<Thread> {
    const { system, lost } = this.#options;
    const { signal } = this.#stopping;
    await inTime(() => this.#recreated, { system, maxMs: RECREATED_MS, signal, late: () => lost() });
    if (this.#thread === null) throw lost();
    return this.#thread;
  }

  /** Of the calls that a failure ends, the first recreates the file. */
  #lose(failed: Thread, cause: unknown): void {
    if (this.#thread !== failed) return;
    this.#thread = null;
    this.#options.onLost(cause);
    this.#recreated = this.#recreate(failed);
  }

  async #recreate(failed: Thread): Promise<void> {
    const { system, recreate, onFault } = this.#options;
    const { signal } = this.#stopping;
    // Its connection deletes the journal by name when it closes: that must not be the new one's.
    await failed.close().catch(() => undefined);
    while (this.#thread === null) {
      await this.#rested;
      if (signal.aborted) return;
      this.#rested = wait(system, REST_MS, signal);
      try {
        this.#thread = await recreate();
      } catch (cause) {
        onFault(cause);
      }
    }
  }
}
