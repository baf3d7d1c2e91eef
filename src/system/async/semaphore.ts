/** A counting semaphore: some may be in at a time, the others wait in order. */
export interface Semaphore {
  /** Resolves once a permit is free, with the function that releases it; throws when too many wait already. */
  acquire(): Promise<() => void>;
}

/** @param full the error for one more than `maxWaiting` */
export function semaphore(
  permits: number,
  { maxWaiting, full }: { readonly maxWaiting: number; readonly full: () => Error },
): Semaphore {
  const waiting: (() => void)[] = [];
  let free = permits;
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async acquire() {
      if (free > 0) free -= 1;
      else if (waiting.length >= maxWaiting) throw full();
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return release;
    },
  };
}

/** Runs a bounded number of tasks at a time; the rest wait in order. The caller bounds how many wait. */
export interface Places {
  within<T>(work: () => Promise<T>): Promise<T>;
}

export function places(count: number): Places {
  const permits = semaphore(count, { maxWaiting: Number.POSITIVE_INFINITY, full: () => new Error('No place') });
  return {
    async within(work) {
      const release = await permits.acquire();
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
