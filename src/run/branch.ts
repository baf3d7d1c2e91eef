/**
 * What travels along the edges of a graph: the draft, score and feedback of one branch. Branches part at a fork and
 * are joined where they meet again.
 */
import { MAX_ALL_FEEDBACK_BYTES, MAX_DRAFT_BYTES, isLonger, jsonBytes } from '../graph/limits.js';

/** A critic's route decision on a draft; a human may override it. */
export type Verdict = 'approve' | 'rework';

export interface Feedback {
  /** Source: a step number or a pause. Feedback with the same source in two branches is kept once when they join. */
  readonly from: string;
  readonly text: string;
}

export interface Branch {
  readonly draft: string | null;
  /** Step or pause the draft comes from; null before the first one. */
  readonly draftFrom: string | null;
  /** Node that wrote the draft. */
  readonly draftBy: string | null;
  /** The last score, as a human may have corrected it. */
  readonly score: number | null;
  /** Step or pause the score comes from; null before the first one. */
  readonly scoreFrom: string | null;
  /** Critic that gave the score, kept when a human corrects it; null for a score given by a human alone. */
  readonly scoreBy: string | null;
  /** The score as the critic gave it, before any correction. */
  readonly givenScore: number | null;
  /** Oldest first. */
  readonly feedback: readonly Feedback[];
  /**
   * The last verdict, as shown and as conditions see it. Once a critic has scored `maxIterations` times it is `approve`,
   * unless a human asks for rework.
   */
  readonly verdict: Verdict | null;
  /** Where this branch parted from others, outermost first. */
  readonly forks: readonly Fork[];
}

/** The step after which branches parted, and the draft and score they shared there. */
export interface Fork {
  readonly step: number;
  readonly draftFrom: string | null;
  readonly scoreFrom: string | null;
}

/** The state a run starts from. */
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
};

/** A branch on its way to a join, and its order among the others. */
export interface Joining {
  readonly branch: Branch;
  readonly order: number;
}

/**
 * Joins branches: drafts in order, each under its author's label; of every critic the last score, of these the lowest;
 * all feedback. What no branch has changed since the fork stays as it is.
 *
 * @param from the step that joins them, or null at the end of a run
 */
export function joinBranches(
  joining: readonly Joining[],
  into: { readonly from: string | null; readonly by: string | null; readonly labelOf: (node: string) => string },
): Branch {
  const branches = inOrder(joining);
  const [first = EMPTY_BRANCH, ...others] = branches;
  if (others.length === 0) return first;
  const forks = commonForks(branches);
  const fork = forks.at(-1);
  return {
    feedback: joinFeedback(branches),
    forks,
    ...joinDrafts(branches, fork, into),
    ...joinVerdicts(branches, fork),
  };
}

/** The branches whose drafts a join concatenates, in order; empty when it takes over a single draft unchanged. */
export function partsOfJoin(joining: readonly Joining[]): readonly Branch[] {
  const branches = inOrder(joining);
  if (isShared(branches)) return [];
  return writtenSince(branches, commonForks(branches).at(-1));
}

function inOrder(joining: readonly Joining[]): readonly Branch[] {
  return [...joining].sort((a, b) => a.order - b.order).map((each) => each.branch);
}

/** The branches that have written a draft of their own since they parted. */
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
  // By the first rule of overrides a human's draft has no author.
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

/** Source id of a human's draft, score or feedback: the pause, 0 for a fork, and the number of steps before it. */
export function humanSource(pause: number, steps: number): string {
  return `g${pause}-${steps}`;
}

/**
 * The step a source belongs to, as a sort key; what a human gave sorts right after the steps before it. Older events name
 * a pause without its steps: their overrides reached every branch, so everything given later sorts after them.
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

/** Whether a branch's draft, which may be joined from several, exceeds the size limit. */
export function isTooLarge(branch: Branch): boolean {
  return branch.draft !== null && isLonger(branch.draft, MAX_DRAFT_BYTES);
}

/** The verdict that a score stands for; null without a score. */
export function verdictOf(score: number | null, passScore: number): Verdict | null {
  if (score === null) return null;
  return score >= passScore ? 'approve' : 'rework';
}

/** Feedback within its limit: the oldest is dropped until the list's JSON text fits. */
export function boundedFeedback(feedback: readonly Feedback[]): readonly Feedback[] {
  // Each item is followed by a comma or the closing bracket.
  let bytes = 1;
  const dropped = feedback.findLastIndex(({ text }) => (bytes += jsonBytes(text) + 1) > MAX_ALL_FEEDBACK_BYTES);
  return dropped < 0 ? feedback : feedback.slice(dropped + 1);
}
