import { setMaxListeners } from 'node:events';

/** Tracks tasks in flight. `end` aborts its signal, on which tasks may wait, and waits until all tasks have ended. */
export class TaskTracker {
  readonly #ending = new AbortController();
  readonly #tasks = new Set<Promise<unknown>>();

  constructor() {
    // Each task that waits listens.
    setMaxListeners(0, this.#ending.signal);
  }

  /** Aborts when the end begins. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Makes the end wait for a task. */
  async track<T>(task: Promise<T>): Promise<T> {
    this.#tasks.add(task);
    try {
      return await task;
    } finally {
      this.#tasks.delete(task);
    }
  }

  /** Aborts the signal; resolves once all tasks have ended. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#tasks);
  }
}
