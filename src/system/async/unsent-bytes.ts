/** Bounds what all connections together hold that is not sent yet, so that stalled readers cost little. */

/** Unsent bytes of all connections together beyond which the slowest readers are cut off. */
const MAX_BYTES_IN_ALL = 64 * 1024 * 1024;

/** A connection on which a client reads what is pushed. */
export interface Reader {
  /** Bytes it was given that have not left this process. */
  unsentBytes(): number;
  /** Ends the connection because its client is too slow. */
  cutOff(): void;
}

/** The bound that all sockets and event streams of the service share. */
export class UnsentBytes {
  readonly #maxInAll: number;
  /** By reader when it was last looked at: never less than there are, beats and places of event streams aside. */
  readonly #counted = new Map<Reader, number>();
  #total = 0;

  constructor({ maxInAll = MAX_BYTES_IN_ALL }: { readonly maxInAll?: number } = {}) {
    this.#maxInAll = maxInAll;
  }

  /** Looks at a reader that was given more: if all have too much unsent by then, those with most are cut off. */
  grew(reader: Reader): void {
    this.#count(reader);
    while (this.#total > this.#maxInAll && this.#recount() > this.#maxInAll) this.#cutOffSlowest();
  }

  /** A reader has gone. */
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

  /** Readers that were given nothing lately may have caught up. */
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
