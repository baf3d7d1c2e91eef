/**
 * A map of at most `limit` entries: one more drops the one that was set longest ago. Setting an entry again makes it the
 * newest, so a caller that sets each entry it reads drops the least recently used.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #limit: number;

  /** @param limit at least 1 */
  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#limit) this.#dropOldest();
    return this;
  }

  #dropOldest(): void {
    for (const oldest of this.keys()) {
      this.delete(oldest);
      return;
    }
  }
}
