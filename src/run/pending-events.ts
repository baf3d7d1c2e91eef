/** Facts being written down: each is checked against the chart before the next one is thought of. */
import type { System } from '../system/system.js';
import type { PromptInput, ToolName } from '../models/port.js';
import type { Toolbox } from '../council/tools/tool.js';
import type { RunEvent, RunFact } from './events.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { FrontierNode, RunState } from './state.js';
import type { RenderedPrompt } from '../council/prompt.js';

/** What a decision needs to know of the world. */
export interface DecisionContext {
  readonly at: string;
  readonly instanceId: string;
  readonly defaultModel: string;
  /** Tools that a node started now can be given. */
  readonly tools: readonly ToolName[];
  readonly sha256: (text: string) => string;
}

/** The context of a decision taken now. */
export function decisionContext({
  system,
  instanceId,
  model,
  tools,
}: {
  readonly system: Pick<System, 'now' | 'sha256'>;
  readonly instanceId: string;
  readonly model: { readonly defaultModel: string };
  readonly tools: Toolbox;
}): DecisionContext {
  const { sha256 } = system;
  return { at: system.now(), instanceId, defaultModel: model.defaultModel, tools: tools.available(), sha256 };
}

/** The facts of one append in the making; `run` is the state they add up to. */
export class PendingEvents {
  readonly context: DecisionContext;
  /** What the attempts that are started are to do, by their calls: who makes them need not work it out again. */
  readonly assignments = new Map<string, Assignment>();
  readonly #chart: Chart;
  readonly #facts: RunFact[] = [];
  #snapshot: RunSnapshot;
  /** Written, but not gone through with yet: often nobody asks what the last fact leads to. */
  #pending: RunEvent | null = null;

  constructor(chart: Chart, snapshot: RunSnapshot, context: DecisionContext) {
    this.#chart = chart;
    this.#snapshot = snapshot;
    this.context = context;
  }

  get run(): RunState {
    return this.snapshot.context.run;
  }

  /**
   * Where the facts lead; the last of them has neither id nor hash there.
   *
   * @throws {TransitionRefused} when the chart does not allow the last fact where it stands
   */
  get snapshot(): RunSnapshot {
    this.#settle();
    return this.#snapshot;
  }

  /** What has been written. @throws {TransitionRefused} when the chart does not allow the last fact where it stands */
  get facts(): readonly RunFact[] {
    this.#settle();
    return this.#facts;
  }

  /** @throws {TransitionRefused} when the chart does not allow the fact before, where that stands */
  write(fact: RunFact): void {
    const { seq } = this.run;
    this.#pending = { seq: seq + 1, id: '', at: this.context.at, hash: '', ...fact };
    this.#facts.push(fact);
  }

  #settle(): void {
    if (this.#pending !== null) this.#snapshot = this.#chart.next(this.#snapshot, this.#pending);
    this.#pending = null;
  }
}

// Attempts as the actor makes them: their names, and what each is to do.

/** What an attempt is to do. */
export interface Assignment {
  readonly promptInput: PromptInput;
  /** The brief as the model is told it. */
  readonly rendered: RenderedPrompt;
}

/** One call of a run: an attempt of a step. */
export function callOf({ step, attempt }: Pick<FrontierNode, 'step' | 'attempt'>): string {
  return `${step}.${attempt}`;
}
