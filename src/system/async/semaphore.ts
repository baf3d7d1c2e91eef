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
