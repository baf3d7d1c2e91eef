/** Runs a council for the terminal: in this process, or at a running service. */
import type {
  BlueprintCreate,
  BlueprintWarning,
  Budget,
  BudgetChange,
  GodModeState,
  ReviewSent,
  RunResult,
  StateOverride,
} from '../../generated/schemas.js';
import type { Matter } from '../../http/matter.js';
import type { BudgetEnd } from '../../run/budget/end.js';
import type { System } from '../../system/system.js';

export interface RunOptions {
  readonly topic: string;
  readonly isGodMode: boolean;
  /** The council to run, or null for the built-in council. */
  readonly blueprint: BlueprintCreate | null;
  /** The most that the run may cost, or null for the blueprint's, or none. */
  readonly budget: Budget | null;
  /** What the run works on and gives, beside what the blueprint says. */
  readonly matter: Matter;
}

/** The progress of a run, as the terminal shows it. */
export interface RunProgress {
  /** The running nodes, several in parallel branches; none while the run waits and after its end. */
  readonly nodes: readonly string[];
  /** How many of the runs that councils start have ended, by node. */
  readonly runs: ReadonlyMap<string, string>;
  /** Drafts so far, or null before the first. */
  readonly iteration: number | null;
  /** The score of the last of these drafts, or null until a critic has scored it. */
  readonly score: number | null;
  readonly isPaused: boolean;
  /** Sentences to show once: a node asks a fallback, or waits for a model's server. */
  readonly notices: readonly string[];
  /** How its budget has ended the run, or null if it has not. */
  readonly budgetEnd: BudgetEnd | null;
}

export type Decision = (
  | { readonly action: 'reject' }
  | {
      readonly action: 'approve';
      /** At a pause for the budget: the new totals. What is absent stays. */
      readonly budget?: BudgetChange;
    }
  | { readonly action: 'modify'; readonly override: StateOverride }
) & {
  /** The user's comment, if any. */
  readonly comment?: string;
  /** The draft that the terminal has shown; absent at a pause for the budget, which shows none. */
  readonly review?: ReviewSent;
};

export interface RunDriver {
  /** The place of the runs, as the user sees it: `here, on the offline model`. */
  readonly place: string;
  /** Starts a run. Resolves with its id once the start is durable. */
  start(request: RunOptions): Promise<string>;
  /** The progress of the run at every change, until the run ends. */
  follow(runId: string): AsyncIterable<RunProgress>;
  /** The open pause, or null if there is none. */
  pause(runId: string): Promise<GodModeState | null>;
  /** Decides the pause at a revision. Resolves with the reason of a refusal, or null if the decision is accepted. */
  decide(runId: string, seq: number, decision: Decision): Promise<string | null>;
  /** Cancels the run and aborts all other calls. Has no effect on a run that has ended. */
  cancel(runId: string): Promise<void>;
  result(runId: string): Promise<RunResult>;
  close(): Promise<void>;
}

export interface DriverOptions {
  readonly system: System;
  /** Shows the user a notice. */
  readonly notify: (text: string) => void;
  readonly warn: Warn;
}

/** Shows the warnings of a blueprint. */
export type Warn = (warnings: readonly BlueprintWarning[]) => void;

/** Shows each warning once. A warning about the budget is left out: the start refuses a budget that cannot hold. */
export function warnOnce(notify: (text: string) => void): Warn {
  const shown = new Set<string>();
  return (warnings) => {
    const fresh = warnings
      .filter(({ path }) => path !== 'budget.usd')
      .map(({ path, message }) => `${path}: ${message}`);
    for (const text of fresh) if (!shown.has(text)) notify(`Warning: ${text}`);
    for (const text of fresh) shown.add(text);
  };
}
