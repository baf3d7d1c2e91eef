/** Bounds the unsent bytes of all connections together, so that stalled readers cost little memory. */

/** Unsent bytes of all connections together beyond which the slowest readers are cut off. */
const MAX_BYTES_IN_ALL = 64 * 1024 * 1024;

/** A connection on which a client reads what is pushed. */
export interface Reader {
  /** Bytes for this reader that have not left the process. */
  unsentBytes(): number;
  /** Ends the connection because its client is too slow. */
  cutOff(): void;
}

/** The limit that all sockets and event streams of the service share. */
export class UnsentBytes {
  readonly #maxInAll: number;
  /** Unsent bytes by reader when they were last counted. */
  readonly #counted = new Map<Reader, number>();
  #total = 0;

  constructor({ maxInAll = MAX_BYTES_IN_ALL }: { readonly maxInAll?: number } = {}) {
    this.#maxInAll = maxInAll;
  }

  /** Counts a reader's new bytes. While the total exceeds the limit, cuts off the reader with the most unsent bytes. */
  update(reader: Reader): void {
    this.#count(reader);
    while (this.#total > this.#maxInAll && this.#recount() > this.#maxInAll) this.#cutOffSlowest();
  }

  /** Removes a reader whose connection has ended. */
  forget(reader: Reader): void {
    this.#total -= this.#of(reader);
    this.#counted.delete(reader);
  }

  #of(reader: Reader): number {
    return this.#counted.get(reader) ?? 0;
  }

  #count(reader: Reader): void {
    const bytes = reader.unsentBytes();
    this.#total += bytes - this.#of(reader);
    this.#counted.set(reader, bytes);
  }

  /** Counts all readers again: some may have caught up. */
  #recount(): number {
    for (const reader of this.#counted.keys()) this.#count(reader);
    return this.#total;
  }

  #cutOffSlowest(): void {
    const [first] = this.#counted.keys();
    if (first === undefined) return;
    let slowest = first;
    for (const reader of this.#counted.keys()) if (this.#of(reader) > this.#of(slowest)) slowest = reader;
    this.forget(slowest);
    slowest.cutOff();
  }
}
