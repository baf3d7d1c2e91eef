/** Load by clients that each do one act at a time. */

export interface ClosedLoop {
  readonly clients: number;
  /** Called before each act. Acts in progress are always finished. */
  readonly goesOn: (acts: number) => boolean;
  readonly act: () => Promise<void>;
}

export interface LoopResult {
  readonly acts: number;
  readonly elapsedMs: number;
  /** Duration of each act. */
  readonly latenciesMs: readonly number[];
}

/** Rejects if an act rejects. */
export async function closedLoop({ clients, goesOn, act }: ClosedLoop): Promise<LoopResult> {
  const latenciesMs: number[] = [];
  let acts = 0;
  const client = async (): Promise<void> => {
    while (goesOn(acts)) {
      acts += 1;
      const from = performance.now();
      await act();
      latenciesMs.push(performance.now() - from);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: clients }, client));
  return { acts, elapsedMs: performance.now() - from, latenciesMs };
}

/** A loop that ends after a time, or after so many acts. */
export function bounded({
  seconds,
  acts = Number.POSITIVE_INFINITY,
}: {
  readonly seconds: number;
  readonly acts?: number;
}): ClosedLoop['goesOn'] {
  const untilMs = performance.now() + seconds * 1_000;
  return (done) => done < acts && performance.now() < untilMs;
}
