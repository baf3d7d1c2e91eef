/** Reference counts by name; a count of 0 is removed. */
export class RefCount {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Counts a name while some work lasts. */
  async during<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#counts.set(name, this.of(name) + 1);
    try {
      return await work();
    } finally {
      const left = this.of(name) - 1;
      if (left === 0) this.#counts.delete(name);
      else this.#counts.set(name, left);
    }
  }
}
