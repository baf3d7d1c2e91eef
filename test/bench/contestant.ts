/** Who takes part in a contest (contest.ts): a module that runs the built-in council with a model it is handed. */

/** The model of every contestant: answers at once, and counts what it is asked. */
export interface CouncilModel {
  draft(before: string | null): Promise<string>;
  critique(draft: string | null): Promise<{ readonly score: number; readonly feedback: string }>;
}

export interface Contestant {
  /** One whole run: master, critic until the score is 8, writer; each step durable before the next begins. */
  run(): Promise<unknown>;
  /** Rejects when it was not what it should be, in its durability for example. */
  stop(): Promise<void>;
}

export interface ContestantModule {
  openContestant(options: { readonly path: string; readonly model: CouncilModel }): Promise<Contestant>;
}

/** How long so many runs at once are made. */
export interface TurnOrder {
  readonly atOnce: number;
  /** Of processor time: a turn tells as much where others use the machine too. */
  readonly seconds: number;
}

export interface TurnReport {
  readonly runs: number;
  readonly elapsedMs: number;
  /** Of all threads of its process, the rest after the turn included. */
  readonly processorMs: number;
  readonly asked: number;
}
