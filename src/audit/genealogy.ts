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
  GenealogyScore,
  GenealogyToolCall,
} from '../generated/schemas.js';
import type { Branch } from '../run/frontier/branch.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import {
  branchAtBudget,
  branchAtEnd,
  branchInto,
  partsAtBudget,
  partsAtEnd,
  partsInto,
} from '../run/frontier/frontier.js';
import { firstSteps } from '../run/frontier/node-start.js';
import { openPanel } from '../run/panels/panels.js';
import type { RunState } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import { StepsInFlight } from './steps-in-flight.js';
import { Provenance, answerFrom, distinct } from './provenance.js';
import { addInherited } from './inherited.js';
import { decisionOf } from './human-decision.js';
import { failureOf, outcomeOf, parentOf, toolCallOf } from './genealogy-entries.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

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
  readonly #inFlight = new StepsInFlight();
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
        return this.#inFlight.addTool(event.data.step, toolCallOf(event));
      case 'NodeCompleted':
        return this.#completed(event, after);
      case 'NodeFailed':
        return void this.#failures.push(failureOf(event));
      case 'PanelClosed':
        return this.#closed(event, before, after);
      case 'RunPaused':
        return firstSteps(after, event.data.nextNodes).forEach((step, node) =>
          this.#addJoinedInto(event, after, { node, step }),
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
    this.#inFlight.begin(step, { parents, model, promptHash, attempt });
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
    const { step, node, member, panelStep, output } = event.data;
    const [from, iteration] = [String(step), after.progress.iterationCount];
    const isMembers = member !== undefined && panelStep !== undefined;
    // The steps of members end when their panel closes: a jury's feedback has their tool calls.
    const input = isMembers ? this.#inFlight.at(step) : this.#inFlight.end(step);
    const { parents, tools, model, promptHash, attempt } = input;
    const author = { node, step, attempt, model, prompt_hash: promptHash, tools };
    if ('draft' in output) {
      this.#provenance.addDraft(event, from, { kind: 'written', parents, iteration, text: output.draft, ...author });
    } else if ('answer' in output && isMembers) {
      const answer = { kind: 'answer' as const, member, parents, iteration, text: output.answer };
      this.#provenance.addDraft(event, answerFrom(panelStep, member), { ...answer, ...author });
    } else if ('score' in output) {
      const { score } = output;
      const given = { node, score, drafts: parents.drafts, iteration };
      if (isMembers) this.#provenance.addScore({ ...scoreAt(event), ...given, member, verdict: null, feedback: null });
      else this.#scored(event, after, { ...given, step, text: output.feedback, tools });
    }
    // A ranking or an analysis is no draft, feedback or score: the deliberation of the run has it.
  }

  /** Adds a critic's or a jury's feedback and score. */
  #scored(
    event: Of<'NodeCompleted' | 'PanelClosed'>,
    after: RunState,
    critique: Pick<GenealogyScore, 'node' | 'score' | 'drafts' | 'iteration'> & {
      readonly step: number;
      readonly text: string;
      readonly tools: GenealogyToolCall[];
    },
  ): void {
    const { step, text, tools, ...given } = critique;
    const [draft = null] = given.drafts;
    const { node } = given;
    const feedback = { kind: 'critic' as const, node, draft, tools, texts: [text] };
    const id = this.#provenance.addFeedback(event, String(step), feedback);
    const verdict = after.progress.frontier.find((each) => each.step === step)?.branch.verdict ?? null;
    this.#provenance.addScore({ ...scoreAt(event), ...given, verdict, feedback: id });
  }

  /** Adds the draft that a panel's answers make or that a rank keeps, or the score of a jury. */
  #closed(event: Of<'PanelClosed'>, before: RunState, after: RunState): void {
    const { node, panelStep: step, result } = event.data;
    const steps = openPanel(before, step)?.steps ?? [];
    const inputs = steps.map((each) => this.#inFlight.end(each.step));
    const iteration = after.progress.iterationCount;
    if (result !== null && 'score' in result) {
      const { score, feedback: text } = result;
      const drafts = distinct(inputs.flatMap(({ parents }) => parents.drafts));
      const tools = inputs.flatMap((each) => each.tools);
      return this.#scored(event, after, { node, score, drafts, iteration, step, text, tools });
    }
    const branch = after.progress.frontier.find((each) => each.step === step)?.branch;
    const text = branch?.draft ?? null;
    if (branch === undefined || text === null) return;
    const parents = { drafts: this.#answersIn(branch), feedback: [] };
    this.#provenance.addDraft(event, String(step), { kind: 'joined', node, step, parents, iteration, text });
  }

  /** Ids of the answers of the panel that a branch has passed last. */
  #answersIn({ deliberation }: Branch): string[] {
    const panel = deliberation?.panel ?? null;
    if (panel === null) return [];
    return distinct(panel.answers.map((answer) => this.#provenance.answerOf(panel.panelStep, answer)));
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

function scoreAt({ seq, at }: Pick<RunEvent, 'seq' | 'at'>): Pick<GenealogyScore, 'seq' | 'at' | 'kind'> {
  return { seq, at, kind: 'critic' };
}
