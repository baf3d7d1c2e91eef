/** Reference counts by name; a count of 0 is removed. */
export class RefCount {
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<string, ((hasWaited: true) => void)[]>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Counts a name while work runs. */
  async during<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#counts.set(name, this.of(name) + 1);
    try {
      return await work();
    } finally {
      const left = this.of(name) - 1;
      if (left === 0) this.#end(name);
      else this.#counts.set(name, left);
    }
  }

  /** Resolves once the count of a name is 0, with whether it had to wait. */
  untilZero(name: string): Promise<boolean> {
    if (this.of(name) === 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(name);
      if (waiting === undefined) this.#waiting.set(name, [resolve]);
      else waiting.push(resolve);
    });
  }

  #end(name: string): void {
    this.#counts.delete(name);
    const waiting = this.#waiting.get(name) ?? [];
    this.#waiting.delete(name);
    for (const resolve of waiting) resolve(true);
  }
}
