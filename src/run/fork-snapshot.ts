/**
 * A run's state as plain data for the first event of its fork (schemas/run-fold.json), and back. Not an XState snapshot.
 * Two recorded names differ from the state's: `gates` is `pauses`, and `front` is `frontier`.
 */
import type { FoldedBranch, FoldedFeedback, RunFold } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import type { FrontierNode, RunProgress, RunState } from './state.js';
import { openPauseOf } from './state.js';

/** The state that a fork of this run continues from, with every field, also those that older snapshots lack. */
export function forkSnapshot(run: RunState): Required<RunFold> {
  const { progress } = run;
  const drafts = new IndexedList<string>((text) => text);
  const feedback = new IndexedList<FoldedFeedback>(({ from, text }) => `${from} ${text}`);
  // Recorded under two names, because the two values differed in earlier versions.
  const folded = ({ verdict, ...branch }: Branch): Required<FoldedBranch> => ({
    ...branch,
    decision: verdict,
    route: verdict,
    draft: branch.draft === null ? null : drafts.indexOf(branch.draft),
    feedback: branch.feedback.map(({ from, text }) => feedback.indexOf({ from, text })),
    forks: branch.forks.map((fork) => ({ ...fork })),
  });
  return {
    version: 1,
    inputTopic: progress.inputTopic,
    steps: progress.steps,
    iterationCount: progress.iterationCount,
    scores: { ...progress.scores },
    sources: progress.sources === null ? null : [...progress.sources],
    gates: openPauseOf(run) === null ? progress.pauses : progress.pauses - 1,
    isApproved: progress.isApproved,
    activeNode: progress.activeNode,
    front: progress.frontier.map((each) => ({
      node: each.node,
      step: each.step,
      isOutstanding: isOutstanding(run, each),
      branch: folded(each.branch),
    })),
    arrivals: progress.arrivals.map((each) => ({ ...each, branch: folded(each.branch) })),
    ended: progress.ended.map((each) => ({ ...each, branch: folded(each.branch) })),
    shown: folded(progress.shown),
    drafts: drafts.all,
    feedback: feedback.all,
  };
}

/** Whether a step has no result yet: it is in flight, or its attempt has failed and no other has started. */
export function isOutstanding({ progress }: RunState, { active, step }: FrontierNode): boolean {
  const { arrivals, ended } = progress;
  return active || ![...arrivals, ...ended].some(({ from }) => from === step);
}

/** The state that a fork begins with. Outstanding steps count their attempts from 0 again. */
export function restoreSnapshot(fold: RunFold, at: string): RunProgress {
  const branchOf = ({ route, decision, givenScore, ...folded }: FoldedBranch): Branch => ({
    ...folded,
    verdict: route,
    givenScore: givenScore === undefined ? folded.score : givenScore,
    draft: folded.draft === null ? null : entryAt(fold.drafts, folded.draft),
    feedback: folded.feedback.map((index) => entryAt(fold.feedback, index)),
  });
  const unfolded = <T extends { readonly branch: FoldedBranch }>(each: T) => ({
    ...each,
    branch: branchOf(each.branch),
  });
  const untried = { attempt: 0, model: null, failures: 0, outage: null, startedAt: at, delayMs: 0, tools: [] };
  const { inputTopic, steps, iterationCount, scores, sources, gates: pauses, isApproved, activeNode } = fold;
  return {
    inputTopic,
    steps,
    iterationCount,
    scores,
    sources,
    pauses,
    isApproved,
    activeNode,
    frontier: fold.front.map(({ node, step, isOutstanding: active, branch }) => {
      return { ...untried, node, step, active, branch: branchOf(branch) };
    }),
    arrivals: fold.arrivals.map(unfolded),
    ended: fold.ended.map(unfolded),
    shown: branchOf(fold.shown),
  };
}

/** A list of distinct values, each referred to by its index. */
class IndexedList<T> {
  readonly all: T[] = [];
  readonly #keyOf: (value: T) => string;
  readonly #indexes = new Map<string, number>();

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf;
  }

  indexOf(value: T): number {
    const key = this.#keyOf(value);
    const index = this.#indexes.get(key) ?? this.all.push(value) - 1;
    this.#indexes.set(key, index);
    return index;
  }
}

function entryAt<T>(all: readonly T[], index: number): T {
  const value = all[index];
  if (value === undefined) throw new Error(`The state of a fork refers to entry ${index} of ${all.length}`);
  return value;
}
