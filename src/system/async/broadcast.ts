/** Delivers items to listeners. Each receives every later item once, in order. */

/** Receives an item. Must not throw. */
export type Take<Item> = (item: Item) => void;

interface Listener<Item> {
  readonly take: Take<Item>;
  isRemoved: boolean;
}

export class Broadcast<Item> {
  readonly #listeners = new Set<Listener<Item>>();
  /**
   * Items that a listener delivers while it receives another. They are delivered after that one, so that all listeners
   * get the same order.
   */
  readonly #due: (readonly [item: Item, to: readonly Listener<Item>[]])[] = [];
  #isDelivering = false;

  /** Number of listeners. */
  get size(): number {
    return this.#listeners.size;
  }

  /**
   * @param take receives every item from the next one on
   * @returns a function that removes the listener; may be called twice
   */
  listen(take: Take<Item>): () => void {
    const listener = { take, isRemoved: false };
    this.#listeners.add(listener);
    return () => {
      listener.isRemoved = true;
      this.#listeners.delete(listener);
    };
  }

  deliver(item: Item): void {
    this.#due.push([item, [...this.#listeners]]);
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    for (let due = this.#due.shift(); due !== undefined; due = this.#due.shift()) {
      for (const listener of due[1]) if (!listener.isRemoved) listener.take(due[0]);
    }
    this.#isDelivering = false;
  }
}
