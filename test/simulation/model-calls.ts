/** Checks every request to a model by any instance of a history. */
import type { ModelRequest } from '../../src/models/port.js';
import { runStream } from '../../src/run/events.js';
import { nodeOf } from '../../src/run/frontier/node-start.js';
import type { FrontierNode } from '../../src/run/state.js';
import { DEFAULT_MODEL, MEMBER_NAMES, MODEL_NAMES } from './graphs.js';
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
  /** Answers of models that no run has recorded, by their marks, with run and attempt. */
  readonly #answers = new Map<string, string>();
  #written = 0;

  constructor(deps: ModelCallsDeps) {
    this.#deps = deps;
  }

  /** A text that no other call gets. */
  nextDraft(): string {
    this.#written += 1;
    return `Draft ${this.#written}`;
  }

  /** Whether an attempt of a run got this answer from a model. Each answer may be recorded once. */
  takeAnswer(mark: string, runId: string, attempt: string): boolean {
    return this.#answers.get(mark) === `${runId} ${attempt}` && this.#answers.delete(mark);
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
    const call = nameOf(owner, runId, at);
    this.#mustHideMembers(record, request, call);
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
      ended: (mark) => {
        this.#calling.delete(call);
        if (mark !== null) this.#answers.set(mark, `${runId} ${attempt}`);
      },
    };
  }

  #mustHideMembers(record: RunRecord, { system, prompt, promptInput }: ModelRequest, call: string): void {
    const text = `${system}\n${prompt}`;
    const isReview = promptInput.role === 'rank' || promptInput.role === 'judge';
    const found = MEMBER_NAMES.exec(text) ?? (isReview ? MODEL_NAMES.exec(text) : null);
    const named = record.hasPanels ? found : null;
    this.#deps.must(named === null, 'no prompt names a member', () => `the prompt of ${call} holds "${named?.[0]}"`);
  }

  /** The attempt for which a model is called, or null if this instance has none. */
  #underWay({ opening }: Instance, request: ModelRequest): UnderWay | null {
    const { promptInput, model = DEFAULT_MODEL, temperature } = request;
    const { topic, label } = promptInput;
    for (const [runId, record] of this.#deps.records) {
      const run = opening?.registry.live(runId) ?? null;
      const owner = run?.ownership.owner ?? null;
      if (run?.progress.inputTopic !== topic || owner === null) continue;
      // No two members of a node have the same model and temperature.
      const at = run.progress.frontier.find((each) => {
        if (!each.active || each.model !== model) return false;
        const node = nodeOf(run, each);
        return node.label === label && node.temperature === temperature;
      });
      if (at !== undefined) return { runId, record, owner, at };
    }
    return null;
  }
}

function nameOf(owner: string, runId: string, { step, attempt }: Pick<FrontierNode, 'step' | 'attempt'>): string {
  return `${owner} ${runId} ${step}.${attempt}`;
}
