/** Work that is done one after the other, in the order it came. */

/** A queue of tasks. The caller bounds how many wait. */
export interface Line {
  /** Runs a task after all earlier ones. It receives the error of the one before it, null if that succeeded. */
  run<T>(work: (failed: unknown) => T | Promise<T>): Promise<T>;
  /** Resolves once all work so far is done. */
  settled(): Promise<unknown>;
}

export function line(): Line {
  let last: Promise<unknown> = Promise.resolve(null);
  return {
    run(work) {
      const turn = last.then(work);
      last = turn.then(
        () => null,
        (error: unknown) => error,
      );
      return turn;
    },
    settled: () => last,
  };
}

/** A line for each name that has work. */
export interface Turns {
  run<T>(name: string, work: (failed: unknown) => T | Promise<T>): Promise<T>;
  /** How many are in a line, the one whose turn it is included. */
  waiting(name: string): number;
}

export function turns(): Turns {
  const lines = new Map<string, { readonly line: Line; count: number }>();
  return {
    async run(name, work) {
      const own = lines.get(name) ?? { line: line(), count: 0 };
      lines.set(name, own);
      own.count += 1;
      try {
        return await own.line.run(work);
      } finally {
        own.count -= 1;
        if (own.count === 0) lines.delete(name);
      }
    },
    waiting: (name) => lines.get(name)?.count ?? 0,
  };
}
