/**
 * Where the drafts, the feedback and the scores of a run come from: a fold of its events with the states before and after
 * each. It keeps digests in place of texts, so it stays small however large the drafts are.
 */
import { isOutput } from '../../graph/output-node.js';
import type {
  GenealogyDraft,
  GenealogyFeedback,
  GenealogyParents,
  GenealogyScore,
  StateOverride,
} from '../../generated/schemas.js';
import type { RunEvent } from '../events.js';
import { forkSource } from '../fork.js';
import type { Branch } from '../frontier/branch.js';
import { humanSource } from '../frontier/branch.js';
import { branchAtBudget, branchAtEnd, branchInto, partsAtBudget, partsAtEnd, partsInto } from '../frontier/frontier.js';
import { firstSteps } from '../frontier/node-start.js';
import { openPanel } from '../panels/panels.js';
import type { GivenDrafts } from '../pauses/override-drafts.js';
import { givenDrafts } from '../pauses/override-drafts.js';
import type { RunState } from '../state.js';
import { pauseOf } from '../state.js';
import type { States } from './fold.js';
import { inheritedAnswers } from './fold.js';
import type { EventRef } from './history.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** The digest of a text, or of a list of texts. */
type Digest = Pick<GenealogyDraft, 'hash' | 'characters' | 'first_line'>;

/** A draft. Its attempt is the last one of its step in the history of the run. */
export type DraftOrigin = Omit<GenealogyDraft, 'attempt' | 'model' | 'prompt_hash' | 'tools'>;

/** Feedback, with the step that gave it, or null if a human or a fork did. */
export type FeedbackOrigin = Omit<GenealogyFeedback, 'tools'> & { readonly step: number | null };

type NewDraft = Omit<DraftOrigin, 'id' | 'seq' | 'at' | 'scores' | keyof Digest> & { readonly text: string };
type NewScore = Omit<GenealogyScore, 'seq' | 'at'>;

export class DraftsFold {
  /** Each list in the order of the events. An id is a letter and the number of its event, such as `d4`. */
  readonly drafts: DraftOrigin[] = [];
  readonly feedback: FeedbackOrigin[] = [];
  readonly scores: GenealogyScore[] = [];
  readonly #digest: (texts: readonly string[]) => Digest;
  /** What the prompt of a step's last attempt shows, by step. */
  readonly #inputs = new Map<number, GenealogyParents>();
  /** By the step, member, pause or fork that branches name as a source. */
  readonly #draftsFrom = new Map<string, DraftOrigin>();
  readonly #feedbackFrom = new Map<string, string>();
  #finalDraft: string | null = null;

  /** @param after the state after the run's first event */
  constructor(first: Of<'RunRequested'>, after: RunState, digest: (texts: readonly string[]) => Digest) {
    this.#digest = digest;
    this.#addInherited(first, after, first.data.changes?.state ?? []);
  }

  /** Id of the draft that a run has completed with, or null if it has none. */
  get finalDraft(): string | null {
    return this.#finalDraft;
  }

  /** Id of a branch's draft, or null if it has none. */
  draftOf({ draft, draftFrom }: Pick<Branch, 'draft' | 'draftFrom'>): string | null {
    return draft === null || draftFrom === null ? null : (this.#draftsFrom.get(draftFrom)?.id ?? null);
  }

  /** Ids of a branch's feedback, oldest first. */
  feedbackOf({ feedback }: Pick<Branch, 'feedback'>): string[] {
    return distinct(feedback.map(({ from }) => this.#feedbackFrom.get(sourceOf(from)) ?? null));
  }

  /** Ids of the drafts that a pause shows for these nodes. */
  draftsInto(run: RunState, nodes: readonly string[]): string[] {
    const steps = firstSteps(run, pauseOf(run)?.nextNodes ?? []);
    return distinct(
      nodes.map((node) => this.draftOf(branchInto(run, node, steps.get(node) ?? run.progress.steps + 1))),
    );
  }

  /** Adds the next event. */
  add(event: RunEvent, { before, after }: States): void {
    switch (event.type) {
      case 'NodeStarted': {
        const { step, node } = event.data;
        if (!before.progress.frontier.some((each) => each.step === step))
          this.#addJoinedInto(event, before, node, step);
        const branch = branchAt(after, step);
        const drafts = branch === null ? [] : distinct([this.draftOf(branch)]);
        this.#inputs.set(step, { drafts, feedback: branch === null ? [] : this.feedbackOf(branch) });
        return;
      }
      case 'NodeCompleted':
        return this.#completed(event, after);
      case 'PanelClosed':
        return this.#closed(event, before, after);
      case 'RunPaused':
        return firstSteps(after, event.data.nextNodes).forEach((step, node) =>
          this.#addJoinedInto(event, after, node, step),
        );
      case 'GateDecided':
        return this.#overridden(event, before, after);
      case 'RunCompleted':
        return this.#ended(event, before);
      default:
        // Other events change no texts.
        return;
    }
  }

  #inputOf(step: number): GenealogyParents {
    return this.#inputs.get(step) ?? { drafts: [], feedback: [] };
  }

  #completed(event: Of<'NodeCompleted'>, after: RunState): void {
    const { step, node, member, panelStep, output } = event.data;
    const iteration = after.progress.iterationCount;
    const parents = this.#inputOf(step);
    // The final output is no draft.
    if ('draft' in output && isOutput(after.plan.node(node))) return;
    if ('draft' in output) {
      this.#addDraft(event, String(step), { kind: 'written', parents, iteration, node, step, text: output.draft });
    } else if ('answer' in output && member !== undefined && panelStep !== undefined) {
      const answer = { kind: 'answer' as const, member, parents, iteration, node, step, text: output.answer };
      this.#addDraft(event, answerFrom(panelStep, member), answer);
    } else if ('score' in output) {
      const { score, feedback } = output;
      if (member === undefined) return this.#scored(event, after, { step, score, drafts: parents.drafts, feedback });
      const given = { kind: 'critic' as const, node, score, drafts: parents.drafts, iteration, member };
      this.#addScore(event, { ...given, verdict: null, feedback: null });
    }
    // A ranking or an analysis is no draft, feedback or score.
  }

  /** Adds the draft that a panel's answers make or that a rank keeps, or the score of a jury. */
  #closed(event: Of<'PanelClosed'>, before: RunState, after: RunState): void {
    const { node, panelStep: step, result } = event.data;
    if (result !== null && 'score' in result) {
      const steps = openPanel(before, step)?.steps ?? [];
      const drafts = distinct(steps.flatMap((each) => this.#inputOf(each.step).drafts));
      return this.#scored(event, after, { step, drafts, ...result });
    }
    const branch = branchAt(after, step);
    if (branch === null || branch.draft === null) return;
    const { panelStep = step, answers = [] } = branch.deliberation?.panel ?? {};
    const drafts = answers.map(({ member }) => this.#draftsFrom.get(answerFrom(panelStep, member))?.id ?? null);
    const parents = { drafts: distinct(drafts), feedback: [] };
    const iteration = after.progress.iterationCount;
    this.#addDraft(event, String(step), { kind: 'joined', node, step, parents, iteration, text: branch.draft });
  }

  /** Adds a critic's or a jury's feedback and score. */
  #scored(
    event: Of<'NodeCompleted' | 'PanelClosed'>,
    after: RunState,
    {
      step,
      score,
      drafts,
      feedback,
    }: Pick<GenealogyScore, 'drafts'> & {
      readonly step: number;
      readonly score: number;
      readonly feedback: string;
    },
  ): void {
    const { node } = event.data;
    const of = { kind: 'critic' as const, node, draft: drafts[0] ?? null, step };
    const id = this.#addFeedback(event, String(step), of, [feedback]);
    const verdict = branchAt(after, step)?.verdict ?? null;
    const iteration = after.progress.iterationCount;
    this.#addScore(event, { kind: 'critic', node, score, drafts, iteration, verdict, feedback: id });
  }

  /** Adds the draft that is joined before a node, unless a pause has added it with the same text. */
  #addJoinedInto(event: EventRef, run: RunState, node: string, step: number): void {
    const parts = partsInto(run, node);
    if (parts.length === 0) return;
    const { draft, draftFrom } = branchInto(run, node, step);
    const known = draft === null || draftFrom === null ? undefined : this.#draftsFrom.get(draftFrom);
    if (draft === null || known?.hash === this.#digest([draft]).hash) return;
    this.#addJoined(event, run, parts, { node, step, text: draft });
  }

  #addJoined(
    event: EventRef,
    { progress: { iterationCount: iteration } }: RunState,
    parts: readonly Branch[],
    joined: Pick<NewDraft, 'node' | 'step' | 'text'>,
  ): string {
    const parents = { drafts: distinct(parts.map((each) => this.draftOf(each))), feedback: [] };
    const from = joined.step === null ? null : String(joined.step);
    return this.#addDraft(event, from, { kind: 'joined', parents, ...joined, iteration });
  }

  #ended(event: Of<'RunCompleted'>, before: RunState): void {
    const { endedBy, finalDraft: text } = event.data;
    const [parts, branch] =
      endedBy === 'budget'
        ? [partsAtBudget(before), branchAtBudget(before)]
        : [partsAtEnd(before), branchAtEnd(before)];
    this.#finalDraft =
      parts.length > 0 && text !== null
        ? this.#addJoined(event, before, parts, { node: null, step: null, text })
        : this.draftOf(branch);
  }

  /** Adds the drafts, the feedback and the score that a human has set. */
  #overridden(event: Of<'GateDecided'>, before: RunState, after: RunState): void {
    const override = overrideAt(event, before);
    if (override === null) return;
    // 1. What the pause showed.
    const { changes, source, given } = override;
    const shown = this.draftOf(before.progress.shown);
    const current = distinct([shown, ...this.draftsInto(before, pauseOf(before)?.nextNodes ?? [])]);
    // 2. A draft for each text, with the drafts of the nodes that got it as parents.
    const iteration = after.progress.iterationCount;
    for (const [from, { draft: text }] of firstOfEach([...given.values()], (each) => each.from)) {
      if (text === null) continue;
      const into = [...given].flatMap(([node, each]) => (each.from === from ? [node] : []));
      const parents = { drafts: this.draftsInto(before, into), feedback: [] };
      this.#addDraft(event, from, { kind: 'human', node: null, step: null, parents, iteration, text });
    }
    // 3. The feedback as one list, and the score.
    const { feedback_history: texts = [], critic_score: score } = changes;
    const human = { kind: 'human' as const, node: null };
    if (texts.length > 0) this.#addFeedback(event, source, { ...human, draft: shown, step: null }, texts);
    if (score === undefined) return;
    const { verdict } = after.progress.shown;
    const drafts = given.size === 0 ? current : distinct([this.draftOf(after.progress.shown)]);
    this.#addScore(event, { ...human, score, verdict, drafts, feedback: null, iteration });
  }

  /**
   * Adds the drafts, feedback and scores of a fork's branches, under the sources that they have in the parent.
   *
   * @param changed fields of the override in the request of the fork; empty in records without them
   */
  #addInherited(request: EventRef, run: RunState, changed: readonly string[]): void {
    const { frontier, arrivals, ended, iterationCount: iteration } = run.progress;
    const branches = [...frontier, ...arrivals, ...ended].map(({ branch }) => branch);
    const kindOf = (from: string, ...fields: readonly string[]): 'human' | 'inherited' => {
      const isAtFork = forkSource(run) === sourceOf(from);
      return isAtFork && fields.some((field) => changed.includes(field)) ? 'human' : 'inherited';
    };
    const none = { drafts: [], feedback: [] };
    // 1. Drafts, and the answers of panels that closed and of those under way.
    for (const [from, { draft: text, draftBy }] of firstOfEach(branches, ({ draftFrom }) => draftFrom)) {
      if (text === null) continue;
      const step = stepIn(from);
      const of = { kind: kindOf(from, 'current_draft', 'branches'), node: step === null ? null : draftBy, step };
      this.#addDraft(request, from, { ...of, parents: none, iteration, text });
    }
    const open = frontier.flatMap(({ node, step, seat }) =>
      seat === null || seat.output === null ? [] : [{ node, step, ...seat, output: seat.output }],
    );
    const answers = open.flatMap(({ output, member, ...of }) =>
      'answer' in output ? [{ ...of, answer: { member, text: output.answer } }] : [],
    );
    for (const { node, panelStep, step, answer } of [...inheritedAnswers(run), ...answers]) {
      const { member, text } = answer;
      const of = { kind: 'inherited' as const, node, member, step, iteration, parents: none };
      this.#addDraft(request, answerFrom(panelStep, member), { ...of, text });
    }
    // 2. Feedback: the texts of one source count as one.
    const feedback = branches.flatMap((branch) => branch.feedback);
    const given = [...firstOfEach(feedback, ({ from }) => from).values()];
    for (const source of new Set(given.map(({ from }) => sourceOf(from)))) {
      const texts = given.flatMap(({ from, text }) => (sourceOf(from) === source ? [text] : []));
      const of = { kind: kindOf(source, 'feedback_history'), node: null, draft: null, step: null };
      this.#addFeedback(request, source, of, texts);
    }
    // 3. Scores, and those of the members of juries under way.
    for (const [from, { score, scoreBy, verdict }] of firstOfEach(branches, ({ scoreFrom }) => scoreFrom)) {
      const kind = kindOf(from, 'critic_score');
      const drafts = kind === 'human' ? distinct(branches.map((each) => this.draftOf(each))) : [];
      const node = stepIn(from) === null ? null : scoreBy;
      this.#addScore(request, { node, kind, score, verdict, drafts, feedback: null, iteration });
    }
    for (const { node, member, output } of open) {
      if (!('score' in output)) continue;
      const of = { kind: 'inherited' as const, node, member, score: output.score, verdict: null };
      this.#addScore(request, { ...of, iteration, drafts: [], feedback: null });
    }
  }

  /** @param from the source by which branches name it, or null at the end of a run. Returns its id */
  #addDraft({ seq, at }: EventRef, from: string | null, { text, ...draft }: NewDraft): string {
    const id = idAt('d', seq, this.drafts);
    const added: DraftOrigin = { id, seq, at, scores: [], ...draft, ...this.#digest([text]) };
    this.drafts.push(added);
    if (from !== null) this.#draftsFrom.set(from, added);
    return id;
  }

  #addFeedback(
    { seq, at }: EventRef,
    from: string,
    feedback: Pick<FeedbackOrigin, 'kind' | 'node' | 'draft' | 'step'>,
    texts: readonly string[],
  ): string {
    const id = idAt('f', seq, this.feedback);
    this.feedback.push({ id, seq, at, ...feedback, count: texts.length, ...this.#digest(texts) });
    this.#feedbackFrom.set(sourceOf(from), id);
    return id;
  }

  /** Adds a score, also to the drafts it judges; that of a jury's member only to the scores. */
  #addScore({ seq, at }: EventRef, score: NewScore): void {
    this.scores.push({ seq, at, ...score });
    const { node, member, score: given, drafts } = score;
    if (given === null || member !== undefined) return;
    // Most scores judge the last draft.
    for (const id of drafts) this.drafts.findLast((draft) => draft.id === id)?.scores.push({ seq, node, score: given });
  }
}

/** What a human has changed at a pause, with its source and the drafts that nodes got. */
export interface OverrideGiven {
  readonly changes: StateOverride;
  readonly source: string;
  readonly given: GivenDrafts;
}

/** The override of a decision, or null if it changed nothing. */
export function overrideAt({ data }: Of<'GateDecided'>, before: RunState): OverrideGiven | null {
  const { action, modifiedState: changes, gate } = data;
  if (action !== 'modify' || changes === null) return null;
  const source = humanSource(gate, before.progress.steps);
  const shown = pauseOf(before)?.nextNodes ?? [];
  return { changes, source, given: givenDrafts(before, changes, { source, shown }) };
}

/** The ids that are not null, each once. */
export function distinct(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))];
}

function branchAt({ progress }: RunState, step: number): Branch | null {
  return progress.frontier.find((each) => each.step === step)?.branch ?? null;
}

/** The source of the answer of a panel's member. */
function answerFrom(panelStep: number, member: string): string {
  return `${panelStep}/${member}`;
}

/** The source without the place in a list: a human's list of feedback counts as one. */
function sourceOf(from: string): string {
  const end = from.indexOf('.');
  return end === -1 ? from : from.slice(0, end);
}

function stepIn(from: string): number | null {
  const step = Number(from);
  return Number.isInteger(step) ? step : null;
}

/** The first item of each key; omits items without a key. */
function firstOfEach<T>(items: readonly T[], keyOf: (item: T) => string | null): ReadonlyMap<string, T> {
  const first = new Map<string, T>();
  for (const item of items) {
    const key = keyOf(item);
    if (key !== null && !first.has(key)) first.set(key, item);
  }
  return first;
}

/** @param others the earlier ones, in the order of their events */
function idAt(letter: string, seq: number, others: readonly EventRef[]): string {
  const earlier = others.length - 1 - others.findLastIndex((each) => each.seq !== seq);
  return earlier === 0 ? `${letter}${seq}` : `${letter}${seq}.${earlier}`;
}
