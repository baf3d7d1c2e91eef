/** Tracks tasks in flight: a stop aborts those that wait and lets the others finish. */

export interface TaskTracker {
  readonly isEnding: boolean;
  /** Keeps work until it is done. */
  track<T>(work: Promise<T>): Promise<T>;
  /**
   * Does something that waits for the log, no longer than until the end. Each has a signal of its own: one signal with
   * many listeners is taken for a leak. Work is given the controller, for not all of it needs the signal.
   */
  untilEnd<T>(work: (end: Pick<AbortController, 'signal'>) => Promise<T>): Promise<T>;
  /** Ends the waits; resolves once all work is done. */
  end(): Promise<void>;
}

export function taskTracker(): TaskTracker {
  const tracked = new Set<Promise<unknown>>();
  const waits = new Set<AbortController>();
  let isEnding = false;

  return {
    get isEnding() {
      return isEnding;
    },
    async track(work) {
      tracked.add(work);
      try {
        return await work;
      } finally {
        tracked.delete(work);
      }
    },
    async untilEnd(work) {
      const wait = new AbortController();
      waits.add(wait);
      if (isEnding) wait.abort();
      try {
        return await work(wait);
      } finally {
        waits.delete(wait);
      }
    },
    async end() {
      isEnding = true;
      for (const wait of waits) wait.abort();
      await Promise.allSettled(tracked);
    },
  };
}
