/**
 * Delivers items to many listeners: each gets every item from when it began to listen, in order and once. Few listeners are
 * served at once, many in slices. An item is kept once for all, until the last listener has received it: a listener holds
 * no more than its place.
 */
import type { Slice, Slices } from './slices.js';
import { WITHOUT_END } from './slices.js';

/** Most items kept for listeners that lag; beyond that the round is completed at once. */
const MAX_KEPT = 64;

/** A place in the sequence of items. */
interface Place<Item> {
  readonly number: number;
  /** The item after it. */
  next: Entry<Item> | null;
}

interface Entry<Item> extends Place<Item> {
  readonly item: Item;
  /** When it was broadcast. */
  readonly sinceMs: number;
}

/** Receives an item, and whether the next follows at once. Must not throw. */
export type Take<Item> = (item: Item, hasMore: boolean) => void;

interface Listener<Item> {
  /** The last item that it received. */
  place: Place<Item>;
  hasLeft: boolean;
  readonly take: Take<Item>;
}

/** A listener's handle: to receive pending items now, or to unsubscribe. */
export interface Listening {
  /** Delivers its pending items at once. */
  catchUp(): void;
  /** Unsubscribes, also while items are pending. May be called twice. */
  leave(): void;
}

/** All listeners one after the other, up to one place. */
interface Round<Item> {
  readonly upTo: Place<Item>;
  /** When the first item of the round was broadcast. */
  readonly sinceMs: number | undefined;
  readonly listeners: Iterator<Listener<Item>>;
  next: IteratorResult<Listener<Item>>;
}

export interface BroadcastOptions {
  /** Most items that a listener receives at once. Default: 1. */
  readonly atOnce?: number;
}

export class Broadcast<Item> {
  readonly #slices: Slices;
  readonly #atOnce: number;
  readonly #listeners = new Set<Listener<Item>>();
  /** The place that every listener has reached. */
  #first: Place<Item> = { number: 0, next: null };
  #last = this.#first;
  #round: Round<Item> | null = null;
  #isTelling = false;

  constructor(slices: Slices, { atOnce = 1 }: BroadcastOptions = {}) {
    this.#slices = slices;
    this.#atOnce = atOnce;
  }

  /** How many listen. */
  get size(): number {
    return this.#listeners.size;
  }

  /** @param take receives every item from the next one on */
  listen(take: Take<Item>): Listening {
    const listener: Listener<Item> = { place: this.#last, hasLeft: false, take };
    this.#listeners.add(listener);
    return {
      catchUp: () => tellUpTo(this.#last, listener),
      leave: () => {
        listener.hasLeft = true;
        this.#listeners.delete(listener);
      },
    };
  }

  tell(item: Item): void {
    if (this.#listeners.size === 0 && !this.#isTelling) return;
    const entry: Entry<Item> = { item, sinceMs: this.#slices.nowMs(), number: this.#last.number + 1, next: null };
    this.#last.next = entry;
    this.#last = entry;
    if (this.#isTelling) return this.#keepBound();
    this.#isTelling = true;
    this.#slices.start((slice) => {
      this.#isTelling = this.#tellSome(slice);
      return this.#isTelling;
    });
  }

  #keepBound(): void {
    if (this.#last.number - this.#first.number > MAX_KEPT) this.#tellSome(WITHOUT_END);
  }

  /** Continues a round, at most to its end: a listener's next item is for another turn. Returns whether more is left. */
  #tellSome(slice: Slice): boolean {
    const round = (this.#round ??= this.#nextRound());
    while (round.next.done !== true) {
      const listener = round.next.value;
      round.next = round.listeners.next();
      tellUpTo(round.upTo, listener);
      if (round.next.done !== true && !slice.hasRoom(round.sinceMs)) return true;
    }
    // Unless a listener has led to the end of the round.
    if (this.#round === round) {
      this.#first = round.upTo;
      this.#round = null;
    }
    return this.#first !== this.#last;
  }

  #nextRound(): Round<Item> {
    let upTo = this.#first;
    for (let count = 0; count < this.#atOnce; count += 1) upTo = upTo.next ?? upTo;
    const listeners = this.#listeners.values();
    return { upTo, sinceMs: this.#first.next?.sinceMs, listeners, next: listeners.next() };
  }
}

function tellUpTo<Item>({ number: last }: Place<Item>, listener: Listener<Item>): void {
  for (let next = nextFor(listener); next !== null && next.number <= last; next = nextFor(listener)) {
    listener.place = next;
    listener.take(next.item, next.number < last);
  }
}

function nextFor<Item>({ place, hasLeft }: Listener<Item>): Entry<Item> | null {
  return hasLeft ? null : place.next;
}
