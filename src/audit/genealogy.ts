/**
 * The origin of the drafts of a run: a fold of its events that also uses the fold of the run, which has the input of
 * each node. Texts appear as digests, so the genealogy stays small however large the drafts are.
 */
import type {
  Genealogy,
  GenealogyFailure,
  GenealogyOutcome,
  GenealogyParent,
  GenealogyParents,
  GenealogyPassage,
  GenealogyToolCall,
  RunChanges,
  RunRequestedData,
  ToolHit,
} from '../generated/schemas.js';
import type { Branch } from '../run/branch.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import { reusedResults } from '../run/fork.js';
import { branchAtBudget, branchAtEnd, branchInto, partsAtBudget, partsAtEnd, partsInto } from '../run/frontier.js';
import type { RunState } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import { Provenance, distinct } from './provenance.js';
import { addInherited } from './inherited.js';
import { decisionOf } from './human-decision.js';
import { clipped } from './digest.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** Most code points of a failed attempt's message. */
const MAX_MESSAGE_CHARS = 300;

/** A step in flight: the input of its attempt, and its tool calls so far. */
interface StepInFlight {
  readonly parents: GenealogyParents;
  readonly model: string;
  readonly promptHash: string;
  readonly attempt: number;
  readonly tools: GenealogyToolCall[];
}

export interface GenealogyDeps {
  readonly sha256: (text: string) => string;
  /** The RFC 8785 text of a JSON value. */
  readonly canonical: (value: unknown) => string;
}

/**
 * The genealogy of a run, or null if there are no events.
 *
 * @param events in order, from the first
 * @throws {RunCorrupt} an event is invalid; also throws what the iteration throws
 */
export async function genealogyOf(
  runId: string,
  events: AsyncIterable<RunEvent>,
  deps: GenealogyDeps,
): Promise<Genealogy | null> {
  const fold = new GenealogyFold(runId, deps);
  for await (const event of events) fold.take(event);
  return fold.genealogy;
}

class GenealogyFold {
  readonly #runId: string;
  readonly #deps: GenealogyDeps;
  readonly #provenance: Provenance;
  readonly #inFlight = new Map<number, StepInFlight>();
  readonly #decisions: Genealogy['decisions'] = [];
  readonly #failures: GenealogyFailure[] = [];
  #run: RunState | null = null;
  #parent: GenealogyParent | null = null;
  #outcome: GenealogyOutcome | null = null;

  constructor(runId: string, deps: GenealogyDeps) {
    this.#runId = runId;
    this.#deps = deps;
    this.#provenance = new Provenance(deps.sha256);
  }

  get genealogy(): Genealogy | null {
    const { drafts, feedback, scores } = this.#provenance;
    const [decisions, failures] = [this.#decisions, this.#failures];
    if (this.#run === null) return null;
    const { runId, head, phase, request } = this.#run;
    const [parent, outcome] = [this.#parent, this.#outcome];
    const { seq } = head;
    const { status } = phase;
    const { actor } = request;
    return { run_id: runId, seq, status, actor, parent, drafts, feedback, scores, decisions, failures, outcome };
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
        return void this.#inFlight.get(event.data.step)?.tools.push(toolCallOf(event));
      case 'NodeCompleted':
        return this.#completed(event, after);
      case 'NodeFailed':
        return void this.#failures.push(failureOf(event));
      case 'RunPaused':
        return event.data.nextNodes.forEach((node, index) =>
          this.#addJoinedInto(event, after, { node, step: after.progress.steps + 1 + index }),
        );
      case 'GateDecided':
        return void this.#decisions.push(decisionOf(event, { before, after }, this.#provenance, this.#deps));
      case 'RunCompleted':
        return this.#ended(event, before);
      case 'RunFailed':
        return void (this.#outcome = outcomeOf(event, null));
      default:
        // Other events change neither texts nor decisions.
        return;
    }
  }

  #requested({ data, seq, at }: Of<'RunRequested'>, after: RunState): void {
    this.#parent = parentOf(data);
    addInherited(this.#provenance, { seq, at }, { run: after, changed: data.changes?.state ?? [] });
  }

  #started(event: Of<'NodeStarted'>, before: RunState, after: RunState): void {
    const { step, node, attempt, model, inputHash: promptHash } = event.data;
    if (!before.progress.frontier.some((each) => each.step === step))
      this.#addJoinedInto(event, before, { node, step });
    const branch = after.progress.frontier.find((each) => each.step === step)?.branch;
    const parents = branch === undefined ? { drafts: [], feedback: [] } : this.#inputOf(branch);
    this.#inFlight.set(step, { parents, model, promptHash, attempt, tools: [] });
  }

  #inputOf(branch: Branch): GenealogyParents {
    return { drafts: distinct([this.#provenance.draftOf(branch)]), feedback: this.#provenance.feedbackOf(branch) };
  }

  /** Adds the draft that is joined before a node, unless a pause has added it. */
  #addJoinedInto(
    event: RunEvent,
    run: RunState,
    { node, step }: { readonly node: string; readonly step: number },
  ): void {
    const parts = partsInto(run, node);
    if (parts.length === 0) return;
    const branch = branchInto(run, node, step);
    if (branch.draft === null || this.#provenance.holds(branch)) return;
    this.#addJoined(event, parts, { node, step, text: branch.draft, iteration: run.progress.iterationCount });
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
    const parents = { drafts: distinct(parts.map((each) => this.#provenance.draftOf(each))), feedback: [] };
    const from = joined.step === null ? null : String(joined.step);
    return this.#provenance.addDraft(event, from, { kind: 'joined', parents, ...joined });
  }

  #completed(event: Of<'NodeCompleted'>, after: RunState): void {
    const { step, node, output } = event.data;
    const { parents, tools, model, promptHash, attempt } = this.#inFlight.get(step) ?? NO_INPUT;
    this.#inFlight.delete(step);
    const [from, iteration] = [String(step), after.progress.iterationCount];
    if ('draft' in output) {
      const author = { node, step, attempt, model, prompt_hash: promptHash, tools };
      this.#provenance.addDraft(event, from, { kind: 'written', parents, iteration, text: output.draft, ...author });
      return;
    }
    const [draft = null] = parents.drafts;
    const critique = { kind: 'critic' as const, node, draft, tools, texts: [output.feedback] };
    const feedback = this.#provenance.addFeedback(event, from, critique);
    const verdict = after.progress.frontier.find((each) => each.step === step)?.branch.verdict ?? null;
    const { seq, at } = event;
    const { drafts } = parents;
    const score = { seq, at, node, kind: 'critic' as const, score: output.score, verdict, drafts, feedback, iteration };
    this.#provenance.addScore(score);
  }

  #ended(event: Of<'RunCompleted'>, before: RunState): void {
    const isAtBudget = event.data.endedBy === 'budget';
    const [parts, text] = [isAtBudget ? partsAtBudget(before) : partsAtEnd(before), event.data.finalDraft];
    const joined = { node: null, step: null, iteration: before.progress.iterationCount };
    const isJoined = parts.length > 0 && text !== null;
    const id = isJoined
      ? this.#addJoined(event, parts, { ...joined, text })
      : this.#provenance.draftOf(isAtBudget ? branchAtBudget(before) : branchAtEnd(before));
    this.#outcome = outcomeOf(event, id);
  }
}

/** The error for a step that never started, which the chart does not allow. */
const NO_INPUT = {
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
  return {
    run_id: runId,
    at,
    hash,
    reused_results: reused,
    changes: changes === undefined ? null : requestedChanges(changes),
  };
}

function requestedChanges({ inputTopic, state, nodes, maxNodeExecutions }: RunChanges): GenealogyParent['changes'] {
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
    const { kind, error, node, actor = null } = event.data;
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
      actor,
    };
  }
  const { criticScore, iterationCount } = event.data;
  const scored = { critic_score: criticScore, iteration_count: iterationCount };
  return { seq, at, status: 'completed', final_draft: finalDraft, ...scored, ...NOT_FAILED };
}

const NOT_FAILED = { kind: null, error: null, node: null, actor: null };

/** Most code points of an untrusted URL or title. */
const MAX_WEB_CHARS = 300;

function toolCallOf({ seq, data }: Extract<RunEvent, { type: 'ToolCalled' }>): GenealogyToolCall {
  return { seq, tool: clipped(data.tool, MAX_WEB_CHARS), error: data.error, passages: data.hits.map(passageOf) };
}

function passageOf(hit: ToolHit): GenealogyPassage {
  if ('document' in hit) return hit;
  return { url: clipped(hit.url, MAX_WEB_CHARS), title: clipped(hit.title, MAX_WEB_CHARS), score: hit.score };
}
