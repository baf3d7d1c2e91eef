/** Drives a run for the terminal: by the engine in this process, or a remote service. */
import type { BlueprintCreate, GodModeState, RunResult, StateOverride } from '../../generated/schemas.js';

export interface RunOptions {
  readonly topic: string;
  readonly isGodMode: boolean;
  /** Null: the built-in council. */
  readonly blueprint: BlueprintCreate | null;
}

/** The progress of a run, as it is displayed. */
export interface RunProgress {
  /** The nodes that run, several in parallel branches; none while the run waits and after its end. */
  readonly nodes: readonly string[];
  /** Drafts so far; null before the first. */
  readonly iteration: number | null;
  readonly score: number | null;
  readonly isPaused: boolean;
}

export type Decision = (
  | { readonly action: 'approve' | 'reject' }
  | { readonly action: 'modify'; readonly override: StateOverride }
) & {
  /** The comment of the human; absent: none. */
  readonly comment?: string;
};

export interface RunDriver {
  /** Where it runs, in a few words for the user. */
  readonly place: string;
  /** Starts a run; resolves with its id once it is durable. */
  start(request: RunOptions): Promise<string>;
  /** The run's progress at every change, until it has ended. */
  follow(runId: string): AsyncIterable<RunProgress>;
  /** The open pause; null when there is none. */
  pause(runId: string): Promise<GodModeState | null>;
  /** Decides the pause at a revision; resolves with why it was refused, null when it was taken. */
  decide(runId: string, seq: number, decision: Decision): Promise<string | null>;
  /** Cancels the run and aborts all other calls; a run that has ended stays as it is. */
  cancel(runId: string): Promise<void>;
  result(runId: string): Promise<RunResult>;
  close(): Promise<void>;
}
