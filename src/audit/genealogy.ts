/**
 * Where a run's drafts come from: a fold of its events beside the run's own fold, from which it takes what each node
 * was given. Texts are told in short, so it is small however large the drafts are. No model is called.
 */
import type {
  Genealogy,
  GenealogyFailure,
  GenealogyOutcome,
  GenealogyParent,
  GenealogyParents,
  GenealogyToolCall,
  RunChanges,
  RunRequestedData,
} from '../generated/schemas.js';
import type { Branch } from '../run/branch.js';
import type { RunEvent } from '../run/events.js';
import { reusedResults } from '../run/fork.js';
import { branchAtEnd, branchInto, partsAtEnd, partsInto } from '../run/front.js';
import type { RunState } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import { upcast } from '../run/upcast.js';
import { Ancestry, distinct } from './ancestry.js';
import { decisionOf } from './gate-story.js';
import { inherit } from './inherited.js';
import { clipped } from './in-short.js';
import { toolCallOf } from './passages-given.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** Most code points told of why an attempt failed. */
const MAX_MESSAGE_CHARS = 300;

/** A step under way: what its attempt was told, and has asked of its tools. */
interface UnderWay {
  readonly parents: GenealogyParents;
  readonly model: string;
  readonly promptHash: string;
  readonly attempt: number;
  readonly tools: GenealogyToolCall[];
}

export interface GenealogyMeans {
  readonly sha256: (text: string) => string;
  /** The RFC 8785 text of a JSON value. */
  readonly canonical: (value: unknown) => string;
}

/**
 * The genealogy of a run; null when there are no events.
 *
 * @param events in order, from the first
 * @throws {RunDamaged} when nothing can be made of an event, or what their iteration throws
 */
export async function genealogyOf(
  runId: string,
  events: AsyncIterable<RunEvent>,
  means: GenealogyMeans,
): Promise<Genealogy | null> {
  const fold = new GenealogyFold(runId, means);
  for await (const event of events) fold.take(event);
  return fold.genealogy;
}

class GenealogyFold {
  readonly #runId: string;
  readonly #means: GenealogyMeans;
  readonly #ancestry: Ancestry;
  readonly #underWay = new Map<number, UnderWay>();
  readonly #decisions: Genealogy['decisions'] = [];
  readonly #failures: GenealogyFailure[] = [];
  #run: RunState | null = null;
  #parent: GenealogyParent | null = null;
  #outcome: GenealogyOutcome | null = null;

  constructor(runId: string, means: GenealogyMeans) {
    this.#runId = runId;
    this.#means = means;
    this.#ancestry = new Ancestry(means.sha256);
  }

  get genealogy(): Genealogy | null {
    const { drafts, feedback, scores } = this.#ancestry;
    const [decisions, failures] = [this.#decisions, this.#failures];
    if (this.#run === null) return null;
    const { runId, seq, status } = this.#run;
    const [parent, outcome] = [this.#parent, this.#outcome];
    return { run_id: runId, seq, status, parent, drafts, feedback, scores, decisions, failures, outcome };
  }

  take(recorded: RunEvent): void {
    const event = upcast(recorded);
    const before = this.#run;
    const after = foldNext(this.#runId, before, event);
    this.#run = after;
    if (event.type === 'RunRequested') this.#requested(event, after);
    else if (before !== null) this.#follow(event, before, after);
  }

  #follow(event: RunEvent, before: RunState, after: RunState): void {
    switch (event.type) {
      case 'NodeStarted':
        return this.#started(event, before, after);
      case 'ToolCalled':
        return void this.#underWay.get(event.data.step)?.tools.push(toolCallOf(event));
      case 'NodeCompleted':
        return this.#completed(event, after);
      case 'NodeFailed':
        return void this.#failures.push(failureOf(event));
      case 'RunPaused':
        return event.data.nextNodes.forEach((node, index) =>
          this.#join(event, after, { node, step: after.steps + 1 + index }),
        );
      case 'GateDecided':
        return void this.#decisions.push(decisionOf(event, { before, after }, this.#ancestry, this.#means));
      case 'RunCompleted':
        return this.#ended(event, before);
      case 'RunFailed':
        return void (this.#outcome = outcomeOf(event, null));
      default:
        return;
    }
  }

  #requested({ data, seq, at }: Of<'RunRequested'>, after: RunState): void {
    this.#parent = parentOf(data);
    inherit(this.#ancestry, { seq, at }, { run: after, changed: data.changes?.state ?? [] });
  }

  #started(event: Of<'NodeStarted'>, before: RunState, after: RunState): void {
    const { step, node, attempt, model, inputHash: promptHash } = event.data;
    if (!before.front.some((each) => each.step === step)) this.#join(event, before, { node, step });
    const branch = after.front.find((each) => each.step === step)?.branch;
    const parents = branch === undefined ? { drafts: [], feedback: [] } : this.#given(branch);
    this.#underWay.set(step, { parents, model, promptHash, attempt, tools: [] });
  }

  #given(branch: Branch): GenealogyParents {
    return { drafts: distinct([this.#ancestry.draftOf(branch)]), feedback: this.#ancestry.feedbackOf(branch) };
  }

  /** Takes note of the draft that is put together before a node, once: a pause may have shown it already. */
  #join(event: RunEvent, run: RunState, { node, step }: { readonly node: string; readonly step: number }): void {
    const parts = partsInto(run, node);
    const branch = branchInto(run, node, step);
    if (parts.length === 0 || branch.draft === null || this.#ancestry.holds(branch)) return;
    this.#addJoined(event, parts, { node, step, text: branch.draft, iteration: run.iterationCount });
  }

  #addJoined(
    event: RunEvent,
    parts: readonly Branch[],
    joined: {
      readonly node: string | null;
      readonly step: number | null;
      readonly text: string;
      readonly iteration: number;
    },
  ): string {
    const parents = { drafts: distinct(parts.map((each) => this.#ancestry.draftOf(each))), feedback: [] };
    const from = joined.step === null ? null : String(joined.step);
    return this.#ancestry.addDraft(event, from, { kind: 'joined', parents, ...joined });
  }

  #completed(event: Of<'NodeCompleted'>, after: RunState): void {
    const { step, node, output } = event.data;
    const { parents, tools, model, promptHash, attempt } = this.#underWay.get(step) ?? NOTHING_KNOWN;
    this.#underWay.delete(step);
    const [from, iteration] = [String(step), after.iterationCount];
    if ('draft' in output) {
      const author = { node, step, attempt, model, prompt_hash: promptHash, tools };
      this.#ancestry.addDraft(event, from, { kind: 'written', parents, iteration, text: output.draft, ...author });
      return;
    }
    const [draft = null] = parents.drafts;
    const told = { kind: 'critic' as const, node, draft, tools, texts: [output.feedback] };
    const feedback = this.#ancestry.addFeedback(event, from, told);
    const verdict = after.front.find((each) => each.step === step)?.branch.decision ?? null;
    const { seq, at } = event;
    const score = { seq, at, node, kind: 'critic' as const, score: output.score, verdict };
    this.#ancestry.addScore({ ...score, drafts: parents.drafts, feedback, iteration });
  }

  #ended(event: Of<'RunCompleted'>, before: RunState): void {
    const [parts, text] = [partsAtEnd(before), event.data.finalDraft];
    const joined = { node: null, step: null, iteration: before.iterationCount };
    const isJoined = parts.length > 0 && text !== null;
    const id = isJoined
      ? this.#addJoined(event, parts, { ...joined, text })
      : this.#ancestry.draftOf(branchAtEnd(before));
    this.#outcome = outcomeOf(event, id);
  }
}

/** Of a step whose start is missing; the chart allows no such record. */
const NOTHING_KNOWN = {
  parents: { drafts: [], feedback: [] },
  tools: [],
  model: null,
  promptHash: null,
  attempt: null,
};

function parentOf({ parent, state, changes }: RunRequestedData): GenealogyParent | null {
  if (parent === null) return null;
  const { runId, at, hash } = parent;
  const reused = state === null ? 0 : reusedResults(state);
  return { run_id: runId, at, hash, reused_results: reused, changes: changes === undefined ? null : askedFor(changes) };
}

function askedFor({ inputTopic, state, nodes, maxNodeExecutions }: RunChanges): GenealogyParent['changes'] {
  return {
    input_topic: inputTopic,
    state,
    nodes,
    ...(maxNodeExecutions !== undefined && { max_node_executions: maxNodeExecutions }),
  };
}

function failureOf({ seq, at, data }: Of<'NodeFailed'>): GenealogyFailure {
  const { node, step, attempt, kind, retryable } = data;
  return { seq, at, node, step, attempt, kind, message: clipped(data.message, MAX_MESSAGE_CHARS), retryable };
}

function outcomeOf(event: Of<'RunCompleted'> | Of<'RunFailed'>, finalDraft: string | null): GenealogyOutcome {
  const { seq, at } = event;
  if (event.type === 'RunFailed') {
    const { kind, error, node } = event.data;
    return {
      seq,
      at,
      status: 'failed',
      final_draft: null,
      critic_score: null,
      iteration_count: null,
      kind,
      error,
      node,
    };
  }
  const { criticScore, iterationCount } = event.data;
  const scored = { critic_score: criticScore, iteration_count: iterationCount };
  return { seq, at, status: 'completed', final_draft: finalDraft, ...scored, kind: null, error: null, node: null };
}
