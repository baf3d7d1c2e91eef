/** Checks every request to a model by any instance of a history. */
import type { ModelRequest } from '../../src/models/port.js';
import { runStream } from '../../src/run/events.js';
import type { FrontierNode } from '../../src/run/state.js';
import type { Instance } from './instance.js';
import type { RunRecord } from './record.js';
import type { CallUnderWay } from './simulated-model.js';
import type { ToolCalls } from './tool-calls.js';

export interface ModelCallsDeps {
  readonly records: ReadonlyMap<string, RunRecord>;
  readonly toolCalls: ToolCalls;
  readonly must: (holds: boolean, invariant: string, detail: () => string) => void;
}

interface UnderWay {
  readonly runId: string;
  readonly record: RunRecord;
  readonly owner: string;
  readonly at: FrontierNode;
}

export class ModelCalls {
  readonly #deps: ModelCallsDeps;
  /** Calls in flight, by instance, run, step and attempt. */
  readonly #calling = new Set<string>();
  /** By run and attempt, the requests that were billed, or are under way. */
  readonly #billed = new Map<string, number>();
  /** Answers of models that no run has recorded. */
  readonly #drafts = new Set<string>();
  #written = 0;

  constructor(deps: ModelCallsDeps) {
    this.#deps = deps;
  }

  /** A text that no other call gets. */
  nextDraft(): string {
    this.#written += 1;
    return `Draft ${this.#written}`;
  }

  /** Whether a recorded draft is an answer of a model. Each answer may be recorded once. */
  takeDraft(text: string): boolean {
    return this.#drafts.delete(text);
  }

  /**
   * Checks that a call is for a step in flight at this instance, whose start is recorded and whose result this instance
   * does not know.
   */
  begun(instance: Instance, request: ModelRequest): CallUnderWay {
    const { must, toolCalls } = this.#deps;
    const { topic, label } = request.promptInput;
    const found = this.#underWay(instance, request);
    if (found === null) {
      const what = `a model is called for "${label}" of "${topic}", which is under way nowhere`;
      must(false, 'append before act', () => what);
      return { toolCalls: () => [], ended: () => undefined, isFree: () => undefined };
    }
    const { runId, record, owner, at } = found;
    const attempt = `${at.step}.${at.attempt}`;
    const call = `${owner} ${runId} ${attempt}`;
    const exchanges = request.rounds?.flatMap((round) => round.exchanges) ?? [];
    const isRecorded = record.attempts.has(attempt) && record.toolCallsOf(attempt) >= exchanges.length;
    must(isRecorded, 'append before act', () => `${call} is called for and not recorded`);
    const billed = this.#billed.get(`${runId} ${attempt}`) ?? 0;
    const isReserved = record.state?.spending === null || record.furtherCallsOf(attempt) >= billed;
    must(isReserved, 'no call without a reservation', () => `${call} after ${billed}`);
    this.#billed.set(`${runId} ${attempt}`, billed + 1);
    const result = record.results.get(at.step);
    const heard = instance.known.get(runStream(runId)) ?? 0;
    const isKnown = result !== undefined && (result.by === owner || result.seq < heard);
    must(!isKnown, 'no result called for after it was recorded', () => call);
    const isOver = record.hasEnded && record.events.length <= heard;
    must(!isOver, 'no call for a run that has ended', () => call);
    must(!this.#calling.has(call), 'no result called for twice at once', () => call);
    this.#calling.add(call);
    return {
      toolCalls: (draws) => toolCalls.askedIn(runId, attempt, request, draws),
      isFree: () => void this.#billed.set(`${runId} ${attempt}`, billed),
      ended: (given) => {
        this.#calling.delete(call);
        if (given !== null) this.#drafts.add(given);
      },
    };
  }

  /** The attempt for which a model is called, or null if this instance has none. */
  #underWay({ opening }: Instance, { promptInput: { topic, label } }: ModelRequest): UnderWay | null {
    for (const [runId, record] of this.#deps.records) {
      const run = opening?.registry.live(runId) ?? null;
      if (run?.progress.inputTopic !== topic || run.ownership.owner === null) continue;
      const at = run.progress.frontier.find((each) => each.active && run.plan.node(each.node).label === label);
      if (at !== undefined) return { runId, record, owner: run.ownership.owner, at };
    }
    return null;
  }
}
