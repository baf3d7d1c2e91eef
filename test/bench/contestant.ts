/** An entry of a contest (contest.ts): a module that runs the built-in council with a given model. */

/** The model of every contestant: answers at once, and counts its calls. */
export interface CouncilModel {
  draft(before: string | null): Promise<string>;
  critique(draft: string | null): Promise<{ readonly score: number; readonly feedback: string }>;
}

export interface Contestant {
  /** One complete run: master, critic until the score is 8, writer; each step durable before the next begins. */
  run(): Promise<unknown>;
  /** Rejects if the contestant broke a rule, for example of durability. */
  stop(): Promise<void>;
}

export interface ContestantModule {
  openContestant(options: { readonly path: string; readonly model: CouncilModel }): Promise<Contestant>;
}

export interface TurnOrder {
  /** Number of concurrent runs. */
  readonly atOnce: number;
  /** Of processor time, so that other load of the machine does not shorten a turn. */
  readonly seconds: number;
}

export interface TurnReport {
  readonly runs: number;
  readonly elapsedMs: number;
  /** Of all threads of its process, including background work after the turn. */
  readonly processorMs: number;
  readonly asked: number;
}
