/**
 * An unbounded queue for one reader. Producers bound it:
 * a run's states and messages are as many as its node executions, and the approval prompt pauses its input per line.
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
