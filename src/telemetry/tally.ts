/** Numbers that are cheap to add to while runs work, and are read when the metrics are requested. */

/** The values of the labels, in the order of their names. */
export type Labels = readonly string[];

/** A value with its labels. */
export interface Labelled<Value> {
  readonly labels: Labels;
  readonly value: Value;
}

/** Sums by labels. */
export class Tally {
  readonly #sums = new Map<string, { readonly labels: Labels; value: number }>();
  readonly #plus: (sum: number, amount: number) => number;

  /** @param plus default: the sum of binary fractions */
  constructor(plus = (sum: number, amount: number): number => sum + amount) {
    this.#plus = plus;
  }

  add(amount: number, ...labels: Labels): void {
    const key = labels.join('\n');
    const sum = this.#sums.get(key);
    if (sum === undefined) this.#sums.set(key, { labels, value: amount });
    else sum.value = this.#plus(sum.value, amount);
  }

  all(): readonly Labelled<number>[] {
    return [...this.#sums.values()];
  }
}

/** How observed values spread over buckets. */
export interface Spread {
  /** Observed values in each bucket: at most its bound, and above that of the bucket before. The last has no bound. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Distributions by labels, over buckets with these upper bounds in ascending order. */
export class Distribution {
  readonly bounds: readonly number[];
  readonly #spreads = new Map<string, { readonly labels: Labels; readonly value: { counts: number[]; sum: number } }>();

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
  }

  observe(value: number, ...labels: Labels): void {
    const key = labels.join('\n');
    let spread = this.#spreads.get(key);
    if (spread === undefined) {
      spread = { labels, value: { counts: Array.from({ length: this.bounds.length + 1 }, () => 0), sum: 0 } };
      this.#spreads.set(key, spread);
    }
    const { counts } = spread.value;
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    spread.value.sum += value;
  }

  all(): readonly Labelled<Spread>[] {
    return [...this.#spreads.values()];
  }
}
