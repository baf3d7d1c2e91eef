/** An unbounded queue for one reader. Its producers bound it. */

export interface Queue<T> {
  put(item: T): void;
  /** Ends the queue after the items that were put before. May be called twice. */
  end(): void;
  /** The next item, or null after the last one. One reader at a time. */
  next(): Promise<T | null>;
  /** Whether `next` would wait. */
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
