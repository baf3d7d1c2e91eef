/** Long work in slices: between two of them the event loop turns, and everything else is served. */
import type { System } from '../system.js';

/**
 * Units of work in a slice. What telling one listener takes is a unit, some 10 to 30 µs. Of 8,800 listeners the last was
 * told after 0.4 to 0.9 s so, after 2 s with 50, while others waited as long for an answer (test/bench/README.md).
 */
const UNITS = 400;
/** Slices of work after which a slice goes to what may wait. */
const MAX_PASSED_OVER = 200;

/** Does at most so many units of what is to be done; returns whether something is left. Must not throw. */
export type SlicedWork = (units: number) => boolean;

export interface SlicesOptions {
  /** Default: 400. */
  readonly units?: number;
}

/** What all long work of a service goes through, so that many works at once take no longer a turn than one. */
export class Slices {
  readonly #system: Pick<System, 'soon'>;
  readonly #units: number;
  /** Works under way, in the order of their turns. */
  readonly #works: SlicedWork[] = [];
  #postponed: (() => void)[] = [];
  /** Slices of work since the last that went to what is postponed. */
  #passedOver = 0;
  #isExpected = false;
  #isStopped = false;

  constructor(system: Pick<System, 'soon'>, { units = UNITS }: SlicesOptions = {}) {
    this.#system = system;
    this.#units = units;
  }

  /** Does the first slice of a work at once, so that little work waits for nothing, and what is left in turn with others. */
  start(work: SlicedWork): void {
    if (this.#isStopped) return finish(work);
    if (!work(this.#units)) return;
    this.#works.push(work);
    this.#expect();
  }

  /** A unit of work for each of some items, which are asked for as it comes to them, and then what follows. */
  forEach<Item>(items: Iterable<Item>, act: (item: Item) => void, then: () => void): void {
    const iterator = items[Symbol.iterator]();
    this.start((units) => {
      for (let left = units; left > 0; left -= 1) {
        const next = iterator.next();
        if (next.done === true) {
          then();
          return false;
        }
        act(next.value);
      }
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

  /** Does at once what is left, and from now on whatever comes. */
  stop(): void {
    this.#isStopped = true;
    for (const work of this.#works.splice(0)) finish(work);
    for (const callback of this.#postponed.splice(0)) callback();
  }

  #expect(): void {
    if (this.#isExpected || this.#works.length + this.#postponed.length === 0) return;
    this.#isExpected = true;
    this.#system.soon(() => {
      this.#isExpected = false;
      this.#slice();
      this.#expect();
    });
  }

  #slice(): void {
    const [work] = this.#works;
    if (work === undefined || this.#passedOver >= MAX_PASSED_OVER) {
      this.#passedOver = 0;
      const due = this.#postponed.slice(0, this.#units);
      this.#postponed = this.#postponed.slice(this.#units);
      for (const callback of due) callback();
    } else {
      if (this.#postponed.length > 0) this.#passedOver += 1;
      const isLeft = work(this.#units);
      this.#works.shift();
      if (isLeft) this.#works.push(work);
    }
  }
}

function finish(work: SlicedWork): void {
  while (work(UNITS));
}
