/** Bounds the bytes that all clients together keep in memory, so that stalled clients cost little. */

/** Bytes of all holders together beyond which the largest are cut off. */
const MAX_BYTES_IN_ALL = 64 * 1024 * 1024;

/** Holds bytes for one client: what it has not read yet, or what it has sent of an unfinished body. */
export interface Holder {
  /** Bytes that it holds now. */
  bytes(): number;
  /** Ends it, because all holders together have too many bytes. It holds none afterwards. */
  cutOff(): void;
}

/** A limit that many holders share. */
export class SharedBytes {
  readonly #maxInAll: number;
  /** Bytes by holder when they were last counted. */
  readonly #counted = new Map<Holder, number>();
  #total = 0;

  constructor({ maxInAll = MAX_BYTES_IN_ALL }: { readonly maxInAll?: number } = {}) {
    this.#maxInAll = maxInAll;
  }

  /** Counts a holder's bytes. While the total exceeds the limit, cuts off the holder with the most bytes. */
  update(holder: Holder): void {
    this.#count(holder);
    while (this.#total > this.#maxInAll && this.#recount() > this.#maxInAll) this.#cutOffLargest();
  }

  /** Removes a holder that has ended. */
  forget(holder: Holder): void {
    this.#total -= this.#of(holder);
    this.#counted.delete(holder);
  }

  #of(holder: Holder): number {
    return this.#counted.get(holder) ?? 0;
  }

  #count(holder: Holder): void {
    const bytes = holder.bytes();
    this.#total += bytes - this.#of(holder);
    this.#counted.set(holder, bytes);
  }

  /** Counts all holders again: some may have fewer bytes now. */
  #recount(): number {
    for (const holder of this.#counted.keys()) this.#count(holder);
    return this.#total;
  }

  #cutOffLargest(): void {
    const [first] = this.#counted.keys();
    if (first === undefined) return;
    let largest = first;
    for (const holder of this.#counted.keys()) if (this.#of(holder) > this.#of(largest)) largest = holder;
    this.forget(largest);
    largest.cutOff();
  }
}
