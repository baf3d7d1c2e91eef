/**
 * Tells many listeners what comes, each of them everything from when it began to listen, in order and once. Few are told at
 * once, many in slices. What is told is kept once for all, until the last of them has been told it: a listener holds no
 * more than its place.
 */
import type { Slices } from './slices.js';

/** Items that are kept for those who are yet to be told. At the bound whoever is further behind is told at once. */
const MAX_KEPT = 64;

/** A place in the order of telling. */
interface Place<Item> {
  readonly number: number;
  /** What is told after it. */
  next: Told<Item> | null;
}

interface Told<Item> extends Place<Item> {
  readonly item: Item;
}

interface Listener<Item> {
  /** After what it was told last. */
  place: Place<Item>;
  hasLeft: boolean;
  readonly take: Take<Item>;
}

/** Told an item, and whether the next comes right after it. Must not throw. */
export type Take<Item> = (item: Item, hasMore: boolean) => void;

/** How a listener has a say in its being told. */
export interface Listening {
  /** Tells it at once what others may have been told already. */
  catchUp(): void;
  /** Ends it, also in the middle of what was to be told. May be called twice. */
  leave(): void;
}

export class Broadcast<Item> {
  readonly #slices: Slices;
  /** Those furthest behind first: whoever was told goes to the end. */
  readonly #listeners = new Set<Listener<Item>>();
  #last: Place<Item> = { number: 0, next: null };
  #isTelling = false;

  constructor(slices: Slices) {
    this.#slices = slices;
  }

  /** How many listen. */
  get size(): number {
    return this.#listeners.size;
  }

  /** @param take told every item from the next one on */
  listen(take: Take<Item>): Listening {
    const listener: Listener<Item> = { place: this.#last, hasLeft: false, take };
    this.#listeners.add(listener);
    return {
      catchUp: () => void this.#tellAllTo(listener),
      leave: () => {
        listener.hasLeft = true;
        this.#listeners.delete(listener);
      },
    };
  }

  tell(item: Item): void {
    if (this.#listeners.size === 0) return;
    const told: Told<Item> = { item, number: this.#last.number + 1, next: null };
    this.#last.next = told;
    this.#last = told;
    if (this.#isTelling) return this.#tellTheLast();
    this.#isTelling = true;
    this.#slices.start((units) => {
      this.#isTelling = this.#tellSome(units);
      return this.#isTelling;
    });
  }

  /** Returns whether some are left. */
  #tellSome(units: number): boolean {
    let left = units;
    for (const listener of this.#listeners) {
      if (listener.place === this.#last) return false;
      if (left <= 0) return true;
      left -= this.#tellAllTo(listener);
    }
    return false;
  }

  /** Keeps the bound. */
  #tellTheLast(): void {
    for (const listener of this.#listeners) {
      if (this.#last.number - listener.place.number <= MAX_KEPT) return;
      this.#tellAllTo(listener);
    }
  }

  /** Returns how many items that were. */
  #tellAllTo(listener: Listener<Item>): number {
    const { number } = listener.place;
    if (nextFor(listener) === null) return 0;
    this.#listeners.delete(listener);
    this.#listeners.add(listener);
    for (let next = nextFor(listener); next !== null; next = nextFor(listener)) {
      listener.place = next;
      listener.take(next.item, next.next !== null);
    }
    return listener.place.number - number;
  }
}

function nextFor<Item>({ place, hasLeft }: Listener<Item>): Told<Item> | null {
  return hasLeft ? null : place.next;
}
