/**
 * News on its way from whoever tells it to the one who reads it, in order, none left out. It sets no bound: whoever fills
 * it must. A run's states and channel are bounded by its node executions; the desk stops its input while a line waits.
 */

export interface Queue<T> {
  put(item: T): void;
  /** Nothing follows; what was put before is still read. May be called twice. */
  end(): void;
  /** The next item; null once everything is read after the end. One reader at a time. */
  next(): Promise<T | null>;
  /** Whether the next item would have to be waited for. */
  isEmpty(): boolean;
}

export function queue<T>(): Queue<T> {
  const items: T[] = [];
  let isEnded = false;
  let wake = (): void => undefined;
  return {
    put(item) {
      if (isEnded) return;
      items.push(item);
      wake();
    },
    end() {
      isEnded = true;
      wake();
    },
    async next() {
      while (items.length === 0 && !isEnded) await new Promise<void>((resolve) => (wake = resolve));
      return items.shift() ?? null;
    },
    isEmpty: () => items.length === 0,
  };
}
