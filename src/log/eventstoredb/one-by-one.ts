/** Batches given item by item. */

/**
 * Gives the items of batches one by one, up to the signal. A generator would do the same and wait several times
 * for each item; unlike one, it must not be asked for the next item before it has given the last, as `for await` does not.
 */
export function oneByOne<T>(batches: AsyncGenerator<readonly T[]>, signal: AbortSignal): AsyncIterableIterator<T> {
  let batch: readonly T[] = [];
  let next = 0;
  const end = async (): Promise<IteratorResult<T>> => {
    batch = [];
    next = 0;
    await batches.return(undefined);
    return { done: true, value: undefined };
  };
  const fromNextBatch = async (): Promise<IteratorResult<T>> => {
    do {
      const taken = await batches.next();
      if (taken.done === true) return { done: true, value: undefined };
      batch = taken.value;
      next = 0;
    } while (batch.length === 0);
    return give();
  };
  const give = (): Promise<IteratorResult<T>> => {
    if (signal.aborted) return end();
    const item = batch[next];
    if (item === undefined) return fromNextBatch();
    next += 1;
    return Promise.resolve({ done: false, value: item });
  };
  return {
    next: give,
    return: end,
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
