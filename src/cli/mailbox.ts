/** News on its way from whoever tells it to the one who reads it, in order, none left out. */

export interface Mailbox<T> {
  put(item: T): void;
  /** Nothing follows; what was put before is still read. May be called twice. */
  end(): void;
  /** The next item; null once everything is read after the end. One reader at a time. */
  next(): Promise<T | null>;
}

export function mailbox<T>(): Mailbox<T> {
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
  };
}
