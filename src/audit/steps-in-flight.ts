/** The steps of a run that have started but not ended, each with its input and its tool calls so far. */
import type { GenealogyParents, GenealogyToolCall } from '../generated/schemas.js';

/** A step in flight: the input of its attempt, and its tool calls so far. */
export interface StepInFlight {
  readonly parents: GenealogyParents;
  /** The model, the hash of the prompt and the attempt are null for a step without a start. The chart allows no such step. */
  readonly model: string | null;
  readonly promptHash: string | null;
  readonly attempt: number | null;
  readonly tools: GenealogyToolCall[];
}

export class StepsInFlight {
  readonly #steps = new Map<number, StepInFlight>();

  begin(step: number, input: Omit<StepInFlight, 'tools'>): void {
    this.#steps.set(step, { ...input, tools: [] });
  }

  addTool(step: number, call: GenealogyToolCall): void {
    this.#steps.get(step)?.tools.push(call);
  }

  at(step: number): StepInFlight {
    const nothing = { drafts: [], feedback: [] };
    return this.#steps.get(step) ?? { parents: nothing, tools: [], model: null, promptHash: null, attempt: null };
  }

  /** Ends a step. Returns it. */
  end(step: number): StepInFlight {
    const ended = this.at(step);
    this.#steps.delete(step);
    return ended;
  }
}
