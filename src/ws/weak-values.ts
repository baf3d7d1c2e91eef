/** Values by key, each for as long as something else holds it. So equal large values of many readers are in memory once. */
export class WeakValues<Value extends object> {
  readonly #refs = new Map<string, WeakRef<Value>>();
  readonly #dropped = new FinalizationRegistry<string>((key) => {
    // Another value may have taken the place of the dropped one.
    if (this.#refs.get(key)?.deref() === undefined) this.#refs.delete(key);
  });

  /** The value of a key, or the one that `make` returns, which becomes the value. */
  of(key: string, make: () => Value): Value {
    const known = this.#refs.get(key)?.deref();
    if (known !== undefined) return known;
    const value = make();
    this.#refs.set(key, new WeakRef(value));
    this.#dropped.register(value, key);
    return value;
  }
}
