/**
 * A run's state as plain data for the first event of its fork (schemas/run-fold.json), and back. Not an XState snapshot.
 * Two recorded names differ from the state's: `gates` is `pauses`, and `front` is `frontier`.
 */
import type {
  FoldedBranch,
  FoldedDeliberation,
  FoldedFeedback,
  FoldedPanel,
  FoldedSeat,
  RunFold,
} from '../generated/schemas.js';
import { foldedChildren, restoredChildren } from './children/children.js';
import type { Branch } from './frontier/branch.js';
import type { Deliberation, PanelAnswers } from './panels/deliberation.js';
import type { FrontierNode, RunProgress, RunState, Seat } from './state.js';
import { openPauseOf } from './state.js';

/** Fields that only runs with panels, ranks or juries have. */
type OfPanels = 'executions' | 'closedPanels' | 'unanswered' | 'juries';

/** Fields that only some branches have. */
type OfSome = 'deliberation' | 'output';

/** The state that a fork of this run continues from, with every field, also those that older snapshots lack. */
export function forkSnapshot(run: RunState): Required<Omit<RunFold, OfPanels>> & Pick<RunFold, OfPanels> {
  const { progress } = run;
  const drafts = new IndexedList<string>((text) => text);
  const feedback = new IndexedList<FoldedFeedback>(({ from, text }) => `${from} ${text}`);
  // Recorded under two names, because the two values differed in earlier versions.
  const foldedPanel = ({ answers, points, ...panel }: PanelAnswers): FoldedPanel => ({
    ...panel,
    answers: answers.map((each) => ({ ...each, text: drafts.indexOf(each.text) })),
    points: points === null ? null : points.map((each) => ({ ...each })),
  });
  const foldedDeliberation = ({ panel, inDraft, analysis, ...rest }: Deliberation): FoldedDeliberation => ({
    ...rest,
    panel: panel === null ? null : foldedPanel(panel),
    inDraft: inDraft.map(foldedPanel),
    analysis: analysis === null ? null : { value: analysis.value, order: [...analysis.order] },
  });
  type Folded = Required<Omit<FoldedBranch, OfSome>> & Pick<FoldedBranch, OfSome>;
  const folded = ({ verdict, deliberation, ...branch }: Branch): Folded => ({
    ...branch,
    ...(deliberation !== null && { deliberation: foldedDeliberation(deliberation) }),
    decision: verdict,
    route: verdict,
    draft: branch.draft === null ? null : drafts.indexOf(branch.draft),
    feedback: branch.feedback.map(({ from, text }) => feedback.indexOf({ from, text })),
    forks: branch.forks.map((fork) => ({ ...fork })),
  });
  const { executions, closedPanels, unanswered, juries } = progress;
  return {
    version: 1,
    inputTopic: progress.inputTopic,
    steps: progress.steps,
    iterationCount: progress.iterationCount,
    ...(executions !== progress.steps && { executions }),
    ...(closedPanels > 0 && { closedPanels }),
    ...(unanswered > 0 && { unanswered }),
    scores: { ...progress.scores },
    ...(Object.keys(juries).length > 0 && {
      juries: Object.fromEntries(
        Object.entries(juries).map(([node, rounds]) => [node, rounds.map((scores) => [...scores])]),
      ),
    }),
    sources: progress.sources === null ? null : [...progress.sources],
    gates: openPauseOf(run) === null ? progress.pauses : progress.pauses - 1,
    isApproved: progress.isApproved,
    activeNode: progress.activeNode,
    front: progress.frontier.map((each) => ({
      node: each.node,
      step: each.step,
      isOutstanding: isOutstanding(run, each),
      branch: folded(each.branch),
      ...(each.seat !== null && { seat: foldedSeat(each.seat, each) }),
      ...(each.children.some(({ end }) => end !== null) && { children: foldedChildren(each) }),
    })),
    arrivals: progress.arrivals.map((each) => ({ ...each, branch: folded(each.branch) })),
    ended: progress.ended.map((each) => ({ ...each, branch: folded(each.branch) })),
    shown: folded(progress.shown),
    drafts: drafts.all,
    feedback: feedback.all,
  };
}

/** A fork starts the time of its panels after their quorum again, so `until` is left out. */
function foldedSeat({ until: _, ...seat }: Seat, { model, orderShown }: FrontierNode): FoldedSeat {
  return { ...seat, model, orderShown: [...orderShown] };
}

/** Whether a step's node has no result yet: the step is outstanding, or its panel has not closed. */
export function isOpen(run: RunState, each: FrontierNode): boolean {
  return each.seat !== null || isOutstanding(run, each);
}

/** Whether a step has no result yet: it is in flight, or its attempt has failed and no other has started. */
export function isOutstanding({ progress }: RunState, { active, step, seat }: FrontierNode): boolean {
  if (seat !== null) return seat.output === null && seat.error === null;
  const { arrivals, ended } = progress;
  return active || ![...arrivals, ...ended].some(({ from }) => from === step);
}

/** The state that a fork begins with. Outstanding steps count their attempts from 0 again. */
export function restoreSnapshot(fold: RunFold, at: string): RunProgress {
  const panelOf = ({ answers, ...panel }: FoldedPanel): PanelAnswers => ({
    ...panel,
    answers: answers.map((each) => ({ ...each, text: entryAt(fold.drafts, each.text) })),
  });
  const deliberationOf = ({ panel, inDraft, ...rest }: FoldedDeliberation): Deliberation => ({
    ...rest,
    panel: panel === null ? null : panelOf(panel),
    inDraft: inDraft.map(panelOf),
  });
  const branchOf = ({ route, decision, givenScore, deliberation, ...folded }: FoldedBranch): Branch => ({
    ...folded,
    deliberation: deliberation === undefined ? null : deliberationOf(deliberation),
    verdict: route,
    givenScore: givenScore === undefined ? folded.score : givenScore,
    draft: folded.draft === null ? null : entryAt(fold.drafts, folded.draft),
    feedback: folded.feedback.map((index) => entryAt(fold.feedback, index)),
  });
  const unfolded = <T extends { readonly branch: FoldedBranch }>(each: T) => ({
    ...each,
    branch: branchOf(each.branch),
  });
  const untried = { attempt: 0, failures: 0, outage: null, startedAt: at, startedSeq: 0, delayMs: 0, tools: [] };
  const {
    inputTopic,
    steps,
    executions = steps,
    closedPanels = 0,
    unanswered = 0,
    iterationCount,
    scores,
    juries = {},
    sources,
  } = fold;
  const { gates: pauses, isApproved, activeNode } = fold;
  return {
    inputTopic,
    steps,
    executions,
    closedPanels,
    unanswered,
    iterationCount,
    scores,
    juries,
    sources,
    pauses,
    isApproved,
    activeNode,
    frontier: fold.front.map(({ node, step, isOutstanding: active, branch, seat, children = [] }) => {
      const begun = { ...restoredSeat(seat), children: restoredChildren(children) };
      return { ...untried, node, step, active, branch: branchOf(branch), ...begun };
    }),
    arrivals: fold.arrivals.map(unfolded),
    ended: fold.ended.map(unfolded),
    shown: branchOf(fold.shown),
  };
}

/** A member that has ended keeps its model and what it was shown; one that has not starts over. */
function restoredSeat(folded: FoldedSeat | undefined): Pick<FrontierNode, 'model' | 'orderShown' | 'seat'> {
  if (folded === undefined) return { model: null, orderShown: [], seat: null };
  const { model, orderShown, ...seat } = folded;
  const hasEnded = seat.output !== null || seat.error !== null;
  return { model: hasEnded ? model : null, orderShown, seat: { ...seat, until: null } };
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
