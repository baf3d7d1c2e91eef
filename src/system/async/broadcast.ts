/** Delivers items to many listeners: each receives every item from when it began to listen, in order and once. */

/** Receives an item. Must not throw. */
export type Take<Item> = (item: Item) => void;

interface Listener<Item> {
  readonly take: Take<Item>;
  hasLeft: boolean;
}

export class Broadcast<Item> {
  readonly #listeners = new Set<Listener<Item>>();
  /** Items that listeners broadcast while they receive one. Those are delivered after it, so that the order is kept. */
  readonly #due: (readonly [item: Item, to: readonly Listener<Item>[]])[] = [];
  #isTelling = false;

  /** How many listen. */
  get size(): number {
    return this.#listeners.size;
  }

  /**
   * @param take receives every item from the next one on
   * @returns ends the listening, and may be called twice
   */
  listen(take: Take<Item>): () => void {
    const listener = { take, hasLeft: false };
    this.#listeners.add(listener);
    return () => {
      listener.hasLeft = true;
      this.#listeners.delete(listener);
    };
  }

  tell(item: Item): void {
    this.#due.push([item, [...this.#listeners]]);
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let due = this.#due.shift(); due !== undefined; due = this.#due.shift()) {
      for (const listener of due[1]) if (!listener.hasLeft) listener.take(due[0]);
    }
    this.#isTelling = false;
  }
}
