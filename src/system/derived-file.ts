/**
 * A file that is folded from the log, behind the thread that serves it. After any failed call the file is closed and
 * deleted, an empty one is created, and its owner folds everything again.
 */
import { ServiceStopping } from '../errors.js';
import { inTime, wait } from './async/deadline.js';
import type { System } from './system.js';
import { CallFailed } from './worker-rpc.js';

/** How long a call waits for a file that is being recreated, in milliseconds. Recreation takes a tenth of a second. */
const RECREATED_MS = 1_000;
/**
 * Shortest time between two new files, in milliseconds, so that a disk that fails again and again does not keep a core
 * busy.
 */
export const REST_MS = 30_000;

export interface DerivedFileOptions<Thread> {
  readonly system: Pick<System, 'after'>;
  /** Starts a thread that deletes the file, if there is one, and creates an empty one. */
  readonly recreate: () => Promise<Thread>;
  /** Called when the file has failed, with the cause. Later calls reach the new file. */
  readonly onLost: (cause: unknown) => void;
  /** Called when the file could not be recreated. The next try is after `REST_MS`. */
  readonly onFault: (cause: unknown) => void;
  /** The error of a call that fails with the file, or finds no file. */
  readonly lost: (options?: ErrorOptions) => Error;
  /** The error of a call that failed without harm to the file, as on a full disk, or null if the file is lost. */
  readonly harmless: (error: CallFailed) => Error | null;
}

/** Owns the thread of the file, and replaces both after each failure. */
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

  /** False while the file is being recreated. Calls then wait, at most a second. */
  get isOpen(): boolean {
    return this.#thread !== null;
  }

  /** @throws {ServiceStopping} or the error of `lost` or `harmless` */
  async ask<T>(question: (thread: Thread) => Promise<T>): Promise<T> {
    const thread = this.#thread ?? (await this.#newThread());
    try {
      return await question(thread);
    } catch (cause) {
      if (cause instanceof ServiceStopping) throw cause;
      const harmless = cause instanceof CallFailed ? this.#options.harmless(cause) : null;
      if (harmless !== null) throw harmless;
      this.#onFailure(thread, cause);
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

  /** Recreates the file. Of several calls that one failure ends, only the first does. */
  #onFailure(failed: Thread, cause: unknown): void {
    if (this.#thread !== failed) return;
    this.#thread = null;
    this.#options.onLost(cause);
    this.#recreated = this.#recreate(failed);
  }

  async #recreate(failed: Thread): Promise<void> {
    const { system, recreate, onFault } = this.#options;
    const { signal } = this.#stopping;
    // Close first: its connection deletes the journal by name, which must not be the journal of the new file.
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
