/** Panels, ranks and juries under way: the steps of their members, and what closes them. */
import { aggregateScore, juryAgreement, memberPoints, rankAgreement } from '../../council/deliberation/agreement.js';
import { indexOfLetter } from '../../council/deliberation/anonymity.js';
import { juryFeedback } from '../../council/deliberation/jury-feedback.js';
import type {
  GraphMember,
  GraphNode,
  JuryResult,
  NodeOutput,
  PanelClosedData,
  RankResult,
} from '../../generated/schemas.js';
import type { Branch } from '../frontier/branch.js';
import type { Contribution, PanelAnswers } from './deliberation.js';
import { deliberated, draftOfAnswers } from './deliberation.js';
import { isOutstanding } from '../fork-snapshot.js';
import { scoredBranch } from '../frontier/output.js';
import type { FrontierNode, RunProgress, RunState, Seat } from '../state.js';
import type { Plan } from '../../graph/plan.js';

/** A member's step in the frontier. */
export type SeatedStep = FrontierNode & { readonly seat: NonNullable<FrontierNode['seat']> };

/** A panel, rank or jury whose members are at work. */
export interface OpenPanel {
  readonly node: string;
  readonly panelStep: number;
  /** End of the grace, after which answers are discarded: ISO 8601, or null before the quorum has answered. */
  readonly until: string | null;
  readonly branch: Branch;
  /** In the order of the node's members. */
  readonly steps: readonly SeatedStep[];
}

/** A panel under way, or null if none has this number. */
export function openPanel(run: RunState, panelStep: number): OpenPanel | null {
  const steps = run.progress.frontier.filter(isSeated).filter(({ seat }) => seat.panelStep === panelStep);
  const [first] = steps;
  if (first === undefined) return null;
  return { node: first.node, panelStep, until: first.seat.until, branch: first.branch, steps };
}

/** All panels under way, in the order of their steps. */
export function openPanels(run: RunState): readonly OpenPanel[] {
  const seated = run.progress.frontier.filter(isSeated);
  if (seated.length === 0) return [];
  const numbers = new Set(seated.map(({ seat }) => seat.panelStep));
  return [...numbers].flatMap((number) => openPanel(run, number) ?? []);
}

function isSeated(each: FrontierNode): each is SeatedStep {
  return each.seat !== null;
}

/** What may happen to a panel now. */
type PanelProgress =
  /** It waits for its members. */
  | { readonly kind: 'waits' }
  /** The quorum has answered, and the grace of the others begins. */
  | { readonly kind: 'quorum'; readonly until: string }
  | { readonly kind: 'closes' }
  /** The members left cannot reach the quorum. The error names those that failed, with their reasons. */
  | { readonly kind: 'fails'; readonly error: string };

/** The progress of a panel at a time, ISO 8601. */
export function progressOf(run: RunState, panel: OpenPanel, at: string): PanelProgress {
  const { graceMs = null } = run.plan.node(panel.node);
  const quorum = quorumOf(run, panel);
  const answered = panel.steps.filter(({ seat }) => seat.output !== null).length;
  const open = panel.steps.filter((each) => isOutstanding(run, each));
  if (answered + open.length < quorum) return { kind: 'fails', error: failureOf(panel, quorum) };
  if (answered < quorum) return { kind: 'waits' };
  if (open.length === 0 || isGraceOver(panel, at)) return { kind: 'closes' };
  // The budget has stopped the others: no call of theirs can follow.
  if (run.spending !== null && open.every(({ active }) => !active)) return { kind: 'closes' };
  if (panel.until !== null || graceMs === null) return { kind: 'waits' };
  if (graceMs === 0) return { kind: 'closes' };
  return { kind: 'quorum', until: new Date(Date.parse(at) + graceMs).toISOString() };
}

/** Whether the grace after the quorum has ended. */
export function isGraceOver({ until }: Pick<OpenPanel, 'until'>, at: string): boolean {
  return until !== null && Date.parse(at) >= Date.parse(until);
}

/** A rank needs one ranking; a panel or jury needs its quorum, by default all members. */
function quorumOf({ plan }: RunState, { node, steps }: Pick<OpenPanel, 'node' | 'steps'>): number {
  const { role, quorum = steps.length } = plan.node(node);
  return role === 'rank' ? 1 : Math.min(quorum, steps.length);
}

function failureOf({ node, steps }: OpenPanel, quorum: number): string {
  const failed = steps.flatMap(({ seat }) => (seat.error === null ? [] : [`"${seat.member}": ${seat.error}`]));
  const wanted = quorum === 1 ? 'none of its members' : `fewer than ${quorum} of its ${steps.length} members`;
  return `Node "${node}": ${wanted} can answer. ${failed.join('; ')}`.slice(0, MAX_ERROR_CHARS).toWellFormed();
}

/** Longest error, in UTF-16 units. */
const MAX_ERROR_CHARS = 4_000;

/** The effect of a closed panel on its branch and its run. */
interface PanelOutcome
  extends
    Pick<PanelClosedData, 'answered' | 'failed' | 'discarded' | 'result'>,
    Pick<RunProgress, 'scores' | 'iterationCount' | 'juries'> {
  readonly branch: Branch;
}

/** The outcome of a panel that closes now. Pure: a reader recomputes it from the events of its members. */
export function outcomeOf(run: RunState, panel: OpenPanel): PanelOutcome {
  const { scores, iterationCount, juries } = run.progress;
  const named = (steps: readonly SeatedStep[]): string[] => steps.map(({ seat }) => seat.member);
  const answered = panel.steps.filter(({ seat }) => seat.output !== null);
  const ended = {
    answered: named(answered),
    failed: named(panel.steps.filter(({ seat }) => seat.error !== null)),
    discarded: named(panel.steps.filter((each) => isOutstanding(run, each))),
  };
  const { role, countsIteration } = run.plan.node(panel.node);
  if (role === 'rank') {
    return { ...ended, ...ranked(run, panel, answered), scores, iterationCount, juries };
  }
  if (role === 'critic') return { ...ended, ...scoredByJury(run, panel), iterationCount };
  const branch = answeredBranch(run, panel, answered);
  return {
    ...ended,
    branch,
    scores,
    juries,
    result: null,
    iterationCount: iterationCount + (countsIteration ? 1 : 0),
  };
}

function answeredBranch(run: RunState, panel: OpenPanel, answered: readonly SeatedStep[]): Branch {
  const members = membersOf(run.plan, panel);
  const closing = run.progress.closedPanels + 1;
  const answers = answered.map(({ seat, model }): Contribution => {
    const { member, output } = seat;
    const text = output !== null && 'answer' in output ? output.answer : '';
    return { member, label: labelAmong(members, member), model, text };
  });
  return withAnswers(
    panel,
    { node: panel.node, panelStep: panel.panelStep, closing, answers, points: null },
    { analysis: null },
  );
}

/** The branch whose draft is these answers. */
function withAnswers(
  { node, panelStep, branch }: OpenPanel,
  panel: PanelAnswers,
  change: Parameters<typeof deliberated>[1],
): Branch {
  return {
    ...branch,
    draft: draftOfAnswers(panel.answers),
    draftFrom: String(panelStep),
    draftBy: node,
    deliberation: deliberated(branch, { ...change, panel, inDraft: [panel] }),
  };
}

function labelAmong(members: readonly GraphMember[], id: string): string {
  return members.find((each) => each.id === id)?.label ?? id;
}

function ranked(
  run: RunState,
  panel: OpenPanel,
  answered: readonly SeatedStep[],
): { readonly branch: Branch; readonly result: RankResult } {
  const reviewed = panel.branch.deliberation?.panel ?? null;
  if (reviewed === null) throw new Error(`Rank "${panel.node}" has no panel`);
  const inOrder = (run.plan.node(reviewed.node).members ?? []).map(({ id }) => id);
  const answers = inOrder.filter((id) => reviewed.answers.some(({ member }) => member === id));
  const rankings = answered.map(({ seat, orderShown }) => {
    const letters = seat.output !== null && 'ranking' in seat.output ? seat.output.ranking : [];
    return { reviewer: seat.member, ranking: membersBehind(letters, orderShown) };
  });
  const points = memberPoints(rankings, answers);
  const agreement = rankAgreement(rankings, answers);
  const { keep = points.length } = run.plan.node(panel.node);
  const kept = points.slice(0, keep).map(({ member }) => member);
  const best = kept.flatMap((id) => reviewed.answers.filter(({ member }) => member === id));
  const branch = withAnswers(panel, { ...reviewed, answers: best, points }, { agreement: agreement.kendall_w });
  return { branch, result: { points, kept, agreement } };
}

/** The members whose answers these letters name. */
export function membersBehind(letters: readonly string[], order: readonly string[]): readonly string[] {
  return letters.flatMap((letter) => order[indexOfLetter(letter)] ?? []);
}

function scoredByJury(
  run: RunState,
  panel: OpenPanel,
): Pick<PanelOutcome, 'branch' | 'scores' | 'juries'> & { readonly result: JuryResult } {
  const { node, panelStep, branch } = panel;
  const members = membersOf(run.plan, panel);
  const critiques = panel.steps.map(({ seat }) => {
    return seat.output !== null && 'score' in seat.output ? { member: seat.member, ...seat.output } : null;
  });
  const given = critiques.filter((each) => each !== null);
  const rounds = [...roundsOf(run, node), critiques.map((each) => each?.score ?? null)];
  const { aggregate = 'median' } = run.plan.node(node);
  const score = aggregateScore(
    given.map((each) => each.score),
    aggregate,
  );
  const feedback = juryFeedback(
    given.map((each) => ({ label: labelAmong(members, each.member), text: each.feedback })),
  );
  const agreement = juryAgreement(rounds);
  const scored = scoredBranch(run, { node, branch, from: String(panelStep), score, feedback });
  const deliberation = deliberated(branch, { spread: agreement.spread });
  return {
    ...scored,
    branch: { ...scored.branch, deliberation },
    juries: { ...run.progress.juries, [node]: rounds },
    result: { score, feedback, aggregate, agreement },
  };
}

/** The scores of a jury's executions so far. Only own properties count, because a node may be called `constructor`. */
function roundsOf({ progress }: RunState, node: string): readonly (readonly (number | null)[])[] {
  return Object.hasOwn(progress.juries, node) ? (progress.juries[node] ?? []) : [];
}

/** Whether an output is of the kind that a member of a node gives. */
export function isOutputOf(role: string, output: NodeOutput): boolean {
  if (role === 'panel') return 'answer' in output;
  if (role === 'rank') return 'ranking' in output;
  return role === 'critic' && 'score' in output;
}

// The members, and the settings of their steps.

/** Whether a node has members that answer in steps of their own. */
export function hasMembers({ role, members }: GraphNode): boolean {
  return role === 'panel' || role === 'rank' || (role === 'critic' && members !== undefined);
}

/** Whether a node always reads the answers of a panel: a rank or a judge. */
export function readsPanel({ role }: GraphNode): boolean {
  return role === 'rank' || role === 'judge';
}

/** Whether a panel has closed on a branch. */
export function hasPanel({ deliberation }: Branch): boolean {
  return (deliberation?.panel ?? null) !== null;
}

/** A step's place in the run, as far as its node and prompt depend on it. */
export type StepPlace = Pick<FrontierNode, 'node' | 'branch'> & { readonly member: string | null };

/** The members of a node; the reviewers of a rank without members are those of the panel that it reviews. */
export function membersOf(plan: Plan, { node, branch }: Pick<StepPlace, 'node' | 'branch'>): readonly GraphMember[] {
  const { members, role } = plan.node(node);
  if (members !== undefined) return members;
  const panel = branch.deliberation?.panel ?? null;
  if (role !== 'rank' || panel === null) return [];
  const reviewed = plan.node(panel.node);
  return (reviewed.members ?? []).map((member) => reviewerOf(reviewed, member));
}

/** The seat of a member that has not answered yet. */
export function emptySeat(member: string, panelStep: number): Seat {
  return { member, panelStep, until: null, output: null, error: null };
}

/** A panel's member as a reviewer: only its model, temperature, limit and fallbacks count. */
function reviewerOf(panel: GraphNode, { id, label, systemPrompt: _, ...own }: GraphMember): GraphMember {
  const { model, temperature, maxOutputTokens, fallbacks } = panel;
  const inherited = {
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(fallbacks !== undefined && { fallbacks }),
  };
  return { id, label, ...inherited, ...own };
}

/** The node of a step, with the settings of its member. Prompts never name a member, so the label stays the node's. */
export function stepNode(plan: Plan, at: StepPlace): GraphNode {
  const node = plan.node(at.node);
  if (at.member === null) return node;
  const member = membersOf(plan, at).find(({ id }) => id === at.member);
  if (member === undefined) throw new Error(`Node "${at.node}" has no member "${at.member}"`);
  // Each object that two spreads make has a hidden class of its own in V8, which takes 0.3 kB of each call in flight.
  return Object.assign({}, node, member, { id: node.id, label: node.label });
}
