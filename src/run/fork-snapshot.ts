/** A run's state as plain data for its fork's first event, and back (schemas/run-fold.json); not an XState snapshot. */
import type { FoldedBranch, FoldedFeedback, RunFold } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import type { FrontierNode, RunState } from './state.js';
import { openGate } from './state.js';

/** The fields a fork takes over from its parent. */
type Restored = Pick<
  RunState,
  | 'inputTopic'
  | 'steps'
  | 'iterationCount'
  | 'scores'
  | 'sources'
  | 'gates'
  | 'isApproved'
  | 'activeNode'
  | 'frontier'
  | 'arrivals'
  | 'ended'
  | 'shown'
>;

/** The state that a fork of this run continues from. */
export function forkSnapshot(run: RunState): RunFold {
  const drafts = new Places<string>((text) => text);
  const feedback = new Places<FoldedFeedback>(({ from, text }) => `${from} ${text}`);
  const folded = (branch: Branch): FoldedBranch => ({
    ...branch,
    route: branch.decision,
    draft: branch.draft === null ? null : drafts.of(branch.draft),
    feedback: branch.feedback.map(({ from, text }) => feedback.of({ from, text })),
    forks: branch.forks.map((fork) => ({ ...fork })),
  });
  return {
    version: 1,
    inputTopic: run.inputTopic,
    steps: run.steps,
    iterationCount: run.iterationCount,
    scores: { ...run.scores },
    sources: run.sources === null ? null : [...run.sources],
    gates: openGate(run) === null ? run.gates : run.gates - 1,
    isApproved: run.isApproved,
    activeNode: run.activeNode,
    front: run.frontier.map((each) => ({
      node: each.node,
      step: each.step,
      isOutstanding: isOutstanding(run, each),
      branch: folded(each.branch),
    })),
    arrivals: run.arrivals.map((each) => ({ ...each, branch: folded(each.branch) })),
    ended: run.ended.map((each) => ({ ...each, branch: folded(each.branch) })),
    shown: folded(run.shown),
    drafts: drafts.all,
    feedback: feedback.all,
  };
}

/** Whether a step has no result yet: it is in flight, or its attempt has failed and the next has not started. */
export function isOutstanding({ arrivals, ended }: RunState, { active, step }: FrontierNode): boolean {
  return active || ![...arrivals, ...ended].some(({ from }) => from === step);
}

/** The state a fork begins with. Outstanding steps count their attempts from 0 again. */
export function restoreSnapshot(fold: RunFold, at: string): Restored {
  const branchOf = ({ route, givenScore, ...folded }: FoldedBranch): Branch => ({
    ...folded,
    decision: route,
    givenScore: givenScore === undefined ? folded.score : givenScore,
    draft: folded.draft === null ? null : placed(fold.drafts, folded.draft),
    feedback: folded.feedback.map((place) => placed(fold.feedback, place)),
  });
  const unfolded = <T extends { readonly branch: FoldedBranch }>(each: T) => ({
    ...each,
    branch: branchOf(each.branch),
  });
  const untried = { attempt: 0, failures: 0, outage: null, startedAt: at, delayMs: 0, tools: [] };
  const { inputTopic, steps, iterationCount, scores, sources, gates, isApproved, activeNode } = fold;
  return {
    ...{ inputTopic, steps, iterationCount, scores, sources, gates, isApproved, activeNode },
    frontier: fold.front.map(({ node, step, isOutstanding: active, branch }) => {
      return { ...untried, node, step, active, branch: branchOf(branch) };
    }),
    arrivals: fold.arrivals.map(unfolded),
    ended: fold.ended.map(unfolded),
    shown: branchOf(fold.shown),
  };
}

/** A list of distinct values, each referred to by its index. */
class Places<T> {
  readonly all: T[] = [];
  readonly #keyOf: (value: T) => string;
  readonly #places = new Map<string, number>();

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf;
  }

  of(value: T): number {
    const key = this.#keyOf(value);
    const place = this.#places.get(key) ?? this.all.push(value) - 1;
    this.#places.set(key, place);
    return place;
  }
}

function placed<T>(all: readonly T[], place: number): T {
  const value = all[place];
  if (value === undefined) throw new Error(`The state of a fork names place ${place} of ${all.length}`);
  return value;
}
