/** Items that come in batches, handed on one at a time. */

/**
 * The items of batches one by one, up to the signal. A generator would do the same but await several times per item.
 * Unlike one, it must not be asked for an item before the previous one has resolved, which `for await` never does.
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
