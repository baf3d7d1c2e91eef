/** Load by clients who each do one thing after the other, so that no more is under way than they are many. */

export interface ClosedLoop {
  readonly clients: number;
  /** Asked before each act; acts under way are finished in any case. */
  readonly goesOn: (acts: number) => boolean;
  readonly act: () => Promise<void>;
}

export interface LoopResult {
  readonly acts: number;
  readonly elapsedMs: number;
  /** What each act took. */
  readonly latenciesMs: readonly number[];
}

/** Rejects with the first act that does. */
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

/** Goes on for a time, and for at most so many acts. */
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
