/** A branch of a run: the draft, score and feedback that travel along edges. Branches fork, and join where they meet. */
import type { Deliberation } from '../panels/deliberation.js';
import { joinDeliberations } from '../panels/deliberation.js';
import { MAX_ALL_FEEDBACK_BYTES, MAX_DRAFT_BYTES, isLonger, jsonBytes } from '../../graph/limits.js';

/** A critic's route decision on a draft. A human may override it. */
export type Verdict = 'approve' | 'rework';

export interface Feedback {
  /** Source: a step number or a pause. A join keeps one of several entries with the same source. */
  readonly from: string;
  readonly text: string;
}

export interface Branch {
  readonly draft: string | null;
  /** The final output of the run, as RFC 8785 JSON; absent before it. */
  readonly output?: string;
  /** Step or pause that the draft comes from, or null without a draft. */
  readonly draftFrom: string | null;
  /** Node that wrote the draft, or null for a human's. */
  readonly draftBy: string | null;
  /** The last score, with a human's correction. */
  readonly score: number | null;
  /** Step or pause that the score comes from, or null without a score. */
  readonly scoreFrom: string | null;
  /** Critic that gave the score, also after a human corrected it, or null if only a human gave a score. */
  readonly scoreBy: string | null;
  /** The score before any correction. */
  readonly givenScore: number | null;
  /** Oldest first. */
  readonly feedback: readonly Feedback[];
  /**
   * The last verdict, as clients and conditions see it. After a critic's `maxIterations`-th score it is `approve`, unless a
   * human asks for rework.
   */
  readonly verdict: Verdict | null;
  /** The forks this branch comes from, outermost first. */
  readonly forks: readonly Fork[];
  /** What panels, ranks, judges and juries have left, or null before the first. */
  readonly deliberation: Deliberation | null;
}

/** A step after which branches fork, and the draft and score that they share there. */
export interface Fork {
  readonly step: number;
  readonly draftFrom: string | null;
  readonly scoreFrom: string | null;
}

/** The branch that a run starts with. */
export const EMPTY_BRANCH: Branch = {
  draft: null,
  draftFrom: null,
  draftBy: null,
  score: null,
  scoreFrom: null,
  scoreBy: null,
  givenScore: null,
  feedback: [],
  verdict: null,
  forks: [],
  deliberation: null,
};

/** A branch on its way to a join, and its order among the others. */
export interface Joining {
  readonly branch: Branch;
  readonly order: number;
}

/**
 * Joins branches: concatenates their drafts in order, each under its author's label; takes the lowest of the critics' last
 * scores; keeps all feedback. A value that no branch has changed since the fork stays the same.
 *
 * @param into the step and node that join them, null at the end of a run
 */
export function joinBranches(
  joining: readonly Joining[],
  into: { readonly from: string | null; readonly by: string | null; readonly labelOf: (node: string) => string },
): Branch {
  const [first] = joining;
  if (first === undefined || joining.length === 1) return first?.branch ?? EMPTY_BRANCH;
  const branches = inOrder(joining);
  const forks = commonForks(branches);
  const fork = forks.at(-1);
  return {
    feedback: joinFeedback(branches),
    forks,
    ...joinDrafts(branches, fork, into),
    ...joinVerdicts(branches, fork),
    deliberation: joinDeliberations(branches, draftSources(branches, fork)),
  };
}

/** The branches whose drafts a join concatenates, in order; empty if it takes a single draft unchanged. */
export function partsOfJoin(joining: readonly Joining[]): readonly Branch[] {
  const branches = inOrder(joining);
  if (isShared(branches)) return [];
  return writtenSince(branches, commonForks(branches).at(-1));
}

function inOrder(joining: readonly Joining[]): readonly Branch[] {
  return [...joining].sort((a, b) => a.order - b.order).map((each) => each.branch);
}

/** The branches whose drafts the joined draft holds. */
function draftSources(branches: readonly Branch[], fork: Fork | undefined): readonly Branch[] {
  const written = writtenSince(branches, fork);
  return written.length === 0 || isShared(branches) ? branches.slice(0, 1) : written;
}

/** The branches that have written a draft since the fork. */
function writtenSince(branches: readonly Branch[], fork: Fork | undefined): readonly Branch[] {
  return distinct(
    branches.filter((branch) => branch.draft !== null && branch.draftFrom !== (fork?.draftFrom ?? null)),
    (branch) => branch.draftFrom,
  );
}

function isShared(branches: readonly Branch[]): boolean {
  return branches.every((branch) => branch.draftFrom === branches[0]?.draftFrom);
}

function joinDrafts(
  branches: readonly Branch[],
  fork: Fork | undefined,
  into: { readonly from: string | null; readonly by: string | null; readonly labelOf: (node: string) => string },
): Pick<Branch, 'draft' | 'draftFrom' | 'draftBy'> {
  const written = writtenSince(branches, fork);
  const [only] = written;
  if (only === undefined || isShared(branches)) {
    const { draft, draftFrom, draftBy } = only ?? branches[0] ?? EMPTY_BRANCH;
    return { draft, draftFrom, draftBy };
  }
  // Under version 1 of the override rules a human's draft has no author.
  const headingOf = ({ draftBy }: Branch): string => (draftBy === null ? '' : into.labelOf(draftBy));
  const parts = written.map((branch) => `## ${headingOf(branch)}\n${branch.draft}`);
  return { draft: parts.join('\n\n'), draftFrom: into.from, draftBy: into.by };
}

function joinVerdicts(
  branches: readonly Branch[],
  fork: Fork | undefined,
): Pick<Branch, 'score' | 'scoreFrom' | 'scoreBy' | 'givenScore' | 'verdict'> {
  const scored = branches.filter(isScored).filter(({ scoreFrom }) => scoreFrom !== (fork?.scoreFrom ?? null));
  const [first, ...others] = scored.filter((branch) => !scored.some((other) => isOutdated(branch, other)));
  const lowest =
    first === undefined
      ? (branches[0] ?? EMPTY_BRANCH)
      : others.reduce((low, branch) => (branch.score < low.score ? branch : low), first);
  const { score, scoreFrom, scoreBy, givenScore, verdict } = lowest;
  return { score, scoreFrom, scoreBy, givenScore, verdict };
}

function isScored(branch: Branch): branch is Branch & { readonly score: number } {
  return branch.score !== null;
}

/** Whether the same critic has scored the other branch later. */
function isOutdated({ scoreBy, scoreFrom }: Branch, other: Branch): boolean {
  if (scoreBy === null || scoreFrom === null || other.scoreFrom === null) return false;
  return other.scoreBy === scoreBy && ageOf(other.scoreFrom) > ageOf(scoreFrom);
}

function joinFeedback(branches: readonly Branch[]): readonly Feedback[] {
  const all = branches.flatMap((branch) => branch.feedback);
  return boundedFeedback(distinct(all, (feedback) => feedback.from).sort((a, b) => ageOf(a.from) - ageOf(b.from)));
}

/** Source id of a human's draft, score or feedback: the number of the pause (0 for a fork) and of the steps before it. */
export function humanSource(pause: number, steps: number): string {
  return `g${pause}-${steps}`;
}

/**
 * The step of a source, as a sort key; a human's source sorts right after the steps before it. Sources of older events
 * name a pause without its steps. Their overrides reached every branch, so they sort before all later sources.
 */
function ageOf(from: string): number {
  if (!from.startsWith('g')) return Number(from);
  const [, steps] = /^g\d+-(\d+)/.exec(from) ?? [];
  return steps === undefined ? 0 : Number(steps) + 0.5;
}

function commonForks(branches: readonly Branch[]): readonly Fork[] {
  const [first = EMPTY_BRANCH, ...others] = branches;
  const differs = first.forks.findIndex((fork, depth) =>
    others.some((branch) => branch.forks[depth]?.step !== fork.step),
  );
  return differs < 0 ? first.forks : first.forks.slice(0, differs);
}

function distinct<T>(items: readonly T[], key: (item: T) => string | null): T[] {
  const seen = new Map<string | null, T>();
  for (const item of items) if (!seen.has(key(item))) seen.set(key(item), item);
  return [...seen.values()];
}

/** Whether a branch's draft, possibly joined from several, exceeds the size limit. */
export function isTooLarge(branch: Branch): boolean {
  return branch.draft !== null && isLonger(branch.draft, MAX_DRAFT_BYTES);
}

/** The verdict that a score implies, or null without a score. */
export function verdictOf(score: number | null, passScore: number): Verdict | null {
  if (score === null) return null;
  return score >= passScore ? 'approve' : 'rework';
}

/** The newest feedback whose JSON text fits the limit: drops the oldest first. */
export function boundedFeedback(feedback: readonly Feedback[]): readonly Feedback[] {
  // Most lists are short: a UTF-16 code unit takes at most 6 bytes, and each item 3 more.
  const units = feedback.reduce((sum, { text }) => sum + text.length, 0);
  if (6 * units + 3 * feedback.length < MAX_ALL_FEEDBACK_BYTES) return feedback;
  // Each item is followed by a comma or the closing bracket.
  let bytes = 1;
  const dropped = feedback.findLastIndex(({ text }) => (bytes += jsonBytes(text) + 1) > MAX_ALL_FEEDBACK_BYTES);
  return dropped < 0 ? feedback : feedback.slice(dropped + 1);
}
