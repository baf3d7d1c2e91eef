/** Long work in slices: between two of them the event loop turns, and everything else is served. */
import type { System } from '../system.js';

/**
 * What a turn of the event loop gives to long work, in milliseconds. What telling one listener takes differs by a hundred
 * (10 µs for a line, 300 µs for a draft of 120 KB), so time is what is shared out, not listeners.
 */
const SLICE_MS = 5;
/**
 * What has waited adds this share of its waiting to a slice, so that a crowd does not fall ever further behind what happens:
 * after a second a turn takes 30 ms.
 */
const WAITING_SHARE = 1 / 40;
/** Slices of work after which one slice goes to postponed callbacks. */
const MAX_PASSED_OVER = 200;

/** The time that a turn has left for long work. */
export interface Slice {
  /**
   * Whether more may be done in this turn.
   *
   * @param sinceMs since when it has waited, by `nowMs`. Default: since now
   */
  hasRoom(sinceMs?: number): boolean;
}

/** Does at least one unit of work, and more while time is left; returns whether work is left. Must not throw. */
export type SlicedWork = (slice: Slice) => boolean;

export interface SlicesOptions {
  /** Milliseconds of a slice. Default: 5; 0: one unit of work a slice. */
  readonly sliceMs?: number;
}

/** The scheduler of all long work of a service: many tasks together take no more of a turn than one. */
export class Slices {
  readonly #system: Pick<System, 'soon' | 'monotonicMs'>;
  readonly #sliceMs: number;
  /** Works under way, in the order of their turns. */
  readonly #works: SlicedWork[] = [];
  #postponed: (() => void)[] = [];
  /** Slices of work since the last that went to what is postponed. */
  #passedOver = 0;
  /** This turn's, once something was done in it. */
  #slice: Slice | null = null;
  #isStopped = false;

  constructor(system: Pick<System, 'soon' | 'monotonicMs'>, { sliceMs = SLICE_MS }: SlicesOptions = {}) {
    this.#system = system;
    this.#sliceMs = sliceMs;
  }

  /** The clock for `sinceMs` of `hasRoom`. */
  nowMs(): number {
    return this.#system.monotonicMs();
  }

  /**
   * Does the beginning of a work at once where this turn has room for it, so that little work waits for nothing; the rest in
   * turn with others.
   */
  start(work: SlicedWork): void {
    if (this.#isStopped) return finish(work);
    const slice = this.#slice;
    const isFull = slice !== null && !slice.hasRoom();
    if (isFull || work(slice ?? this.#newSlice())) this.#works.push(work);
  }

  /** A unit of work for each of some items, which are asked for as it comes to them, and then what follows. */
  forEach<Item>(items: Iterable<Item>, act: (item: Item) => void, then: () => void): void {
    const iterator = items[Symbol.iterator]();
    this.start((slice) => {
      do {
        const next = iterator.next();
        if (next.done === true) {
          then();
          return false;
        }
        act(next.value);
      } while (slice.hasRoom());
      return true;
    });
  }

  /**
   * Calls back once no work is under way, at once when there is none; where there always is some, after many slices of it.
   * For what may wait, one unit each; must not throw.
   */
  postpone(callback: () => void): void {
    if (this.#works.length === 0) return callback();
    this.#postponed.push(callback);
  }

  /** Finishes all work at once; from now on new work runs to its end when it is started. */
  stop(): void {
    this.#isStopped = true;
    for (const work of this.#works.splice(0)) finish(work);
    for (const callback of this.#postponed.splice(0)) callback();
  }

  /** Opens this turn's slice; the next turn's follows if something is left. */
  #newSlice(): Slice {
    const fromMs = this.nowMs();
    const slice: Slice = {
      hasRoom: (sinceMs = fromMs) => this.nowMs() - fromMs < this.#sliceMs + (fromMs - sinceMs) * WAITING_SHARE,
    };
    this.#slice = slice;
    this.#system.soon(() => {
      this.#slice = null;
      if (this.#works.length + this.#postponed.length > 0) this.#work(this.#newSlice());
    });
    return slice;
  }

  #work(slice: Slice): void {
    if (this.#works.length === 0 || this.#passedOver >= MAX_PASSED_OVER) return this.#doPostponed(slice);
    if (this.#postponed.length > 0) this.#passedOver += 1;
    // Each task runs at most once per turn; unfinished tasks wait even if time is left.
    for (let count = this.#works.length; count > 0; count -= 1) {
      const isLeft = this.#works[0]?.(slice) === true;
      const work = this.#works.shift();
      if (isLeft && work !== undefined) this.#works.push(work);
      if (!slice.hasRoom()) return;
    }
  }

  #doPostponed(slice: Slice): void {
    this.#passedOver = 0;
    const due = this.#postponed;
    this.#postponed = [];
    let count = 0;
    do due[count++]?.();
    while (count < due.length && slice.hasRoom());
    this.#postponed = [...due.slice(count), ...this.#postponed];
  }
}

/** For what cannot wait. */
export const WITHOUT_END: Slice = { hasRoom: () => true };

function finish(work: SlicedWork): void {
  while (work(WITHOUT_END));
}
