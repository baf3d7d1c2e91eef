/** Runs tasks one after the other, in the order they came. The caller bounds how many wait. */
export class Sequencer {
  #last: Promise<unknown> = Promise.resolve(null);

  /** Runs a task after all earlier ones. It receives the error of the one before it, or null if that succeeded. */
  run<T>(task: (previousError: unknown) => T | Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.then(
      () => null,
      (error: unknown) => error,
    );
    return result;
  }

  /** Resolves once all tasks so far have ended. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** One sequencer per key, as long as the key has tasks. */
export class KeyedSequencer {
  readonly #byKey = new Map<string, { readonly sequencer: Sequencer; count: number }>();

  async run<T>(key: string, task: (previousError: unknown) => T | Promise<T>): Promise<T> {
    const entry = this.#byKey.get(key) ?? { sequencer: new Sequencer(), count: 0 };
    this.#byKey.set(key, entry);
    entry.count += 1;
    try {
      return await entry.sequencer.run(task);
    } finally {
      entry.count -= 1;
      if (entry.count === 0) this.#byKey.delete(key);
    }
  }

  /** Number of tasks of a key that have not ended. */
  count(key: string): number {
    return this.#byKey.get(key)?.count ?? 0;
  }
}
