/** Tasks in flight: one after the other, a few at a time, and awaited at the end. */
import { setMaxListeners } from 'node:events';
import type { System } from '../system.js';
import { wait } from './deadline.js';

/** Runs tasks one after the other, in the order they came. The caller bounds how many wait. */
export class Sequencer {
  #last: Promise<unknown> = Promise.resolve(null);

  /** Runs a task after all earlier ones. It receives the error of the one before it, or null if that succeeded. */
  run<T>(task: (previousError: unknown) => T | Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.then(
      () => null,
      (error: unknown) => error,
    );
    return result;
  }

  /** Resolves once all tasks so far have ended. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** One sequencer per key, as long as the key has tasks. */
export class KeyedSequencer {
  readonly #byKey = new Map<string, { readonly sequencer: Sequencer; count: number }>();

  async run<T>(key: string, task: (previousError: unknown) => T | Promise<T>): Promise<T> {
    const entry = this.#byKey.get(key) ?? { sequencer: new Sequencer(), count: 0 };
    this.#byKey.set(key, entry);
    entry.count += 1;
    try {
      return await entry.sequencer.run(task);
    } finally {
      entry.count -= 1;
      if (entry.count === 0) this.#byKey.delete(key);
    }
  }

  /** Number of tasks of a key that have not ended. */
  count(key: string): number {
    return this.#byKey.get(key)?.count ?? 0;
  }
}

/** A counting semaphore: at most `permits` tasks run at a time, the others wait in order. */
export interface Semaphore {
  /** Resolves once a permit is free, with the function that releases it. @throws the error of `full` */
  acquire(): Promise<() => void>;
  /** Runs a task with a permit. @throws the error of `full` */
  run<T>(task: () => Promise<T>): Promise<T>;
}

/** How many tasks may wait for a permit, and the error for one more. */
export interface WaitLimit {
  readonly maxWaiting: number;
  readonly full: () => Error;
}

/** @param limit default: the caller bounds how many wait */
export function semaphore(permits: number, limit?: WaitLimit): Semaphore {
  // A set, because an array moves all others when the first of tens of thousands leaves.
  const waiting = new Set<() => void>();
  let free = permits;
  const release = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next();
  };
  const turn = (): Promise<void> => {
    if (limit !== undefined && waiting.size >= limit.maxWaiting) throw limit.full();
    return new Promise((resolve) => waiting.add(resolve));
  };
  return {
    async acquire() {
      if (free > 0) free -= 1;
      else await turn();
      return release;
    },
    async run(task) {
      if (free > 0) free -= 1;
      else await turn();
      try {
        return await task();
      } finally {
        release();
      }
    },
  };
}

/** How work is repeated. */
export interface Repeated {
  readonly system: Pick<System, 'after'>;
  readonly everyMs: number;
  /** Default: `everyMs`. */
  readonly firstMs?: number;
  /** Receives an error of the work; the next time tries again. */
  readonly onFault: (error: unknown) => void;
}

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

  /** Does work in the background until the end begins: the first time after `firstMs`, and `everyMs` after each time. */
  repeat(work: () => Promise<unknown>, how: Repeated): void {
    void this.track(this.#repeat(work, how));
  }

  async #repeat(
    work: () => Promise<unknown>,
    { system, everyMs, firstMs = everyMs, onFault }: Repeated,
  ): Promise<void> {
    const { signal } = this;
    for (let waitMs = firstMs; ; waitMs = everyMs) {
      await wait(system, waitMs, signal);
      if (signal.aborted) return;
      try {
        await work();
      } catch (error) {
        if (!this.isEnding) onFault(error);
      }
    }
  }

  /** Aborts the signal; resolves once all tasks have ended. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#tasks);
  }
}
