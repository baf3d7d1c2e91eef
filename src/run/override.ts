/**
 * What a human's override makes of a run's state. Drafts reach the branches about to run; a branch that has ended, or
 * that waits at a join, keeps its own. Everything else holds in every branch that lives.
 */
import type { Route, StateOverride } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import { boundedFeedback, verdict } from './branch.js';
import { isBeyondRework } from './output.js';
import type { DraftsGiven, OverrideAt } from './override-drafts.js';
import { draftsGiven, overrideDrafts, overrideLastDraft } from './override-drafts.js';
import type { OverrideFault } from './override-refused.js';
import { OverrideRefused } from './override-refused.js';
import { liveBranches } from './session.js';
import type { Arrival, RunState } from './state.js';
import { rerouted } from './take-route.js';

/** Where a run goes under an override. */
export interface OverrideWay {
  /** The last node's new route; null: it was not routed again. */
  readonly route: Route | null;
  readonly nextNodes: readonly string[];
}

/** The state under an override. */
export function overrideState(run: RunState, override: StateOverride, at: OverrideAt & OverrideWay): RunState {
  const drafts = draftsGiven(override, at);
  const changed = beforeItsRoute(run, override, { source: at.source, drafts });
  const routed = at.route === null ? changed : rerouted(changed, at.route.next);
  return overrideDrafts(routed, drafts, at.nextNodes);
}

/** The state that the last node is routed in again. */
export function overriddenLast(run: RunState, override: StateOverride, at: OverrideAt): RunState {
  return beforeItsRoute(run, override, { source: at.source, drafts: draftsGiven(override, at) });
}

function beforeItsRoute(
  run: RunState,
  override: StateOverride,
  { source, drafts }: { readonly source: string; readonly drafts: DraftsGiven },
): RunState {
  return overrideLastDraft(overrideAllBut(run, override, source), drafts);
}

/** Everything but drafts, in every branch that lives. */
function overrideAllBut(run: RunState, override: StateOverride, source: string): RunState {
  const parted = new Set(run.ended.flatMap(({ branch }) => branch.forks.map(({ step }) => step)));
  const change = <T extends { readonly branch: Branch }>(each: T, scored: readonly Branch[]): T => ({
    ...each,
    branch: overrideBranch(each.branch, override, { source, parted, judged: judgedOf(run, scored) }),
  });
  const meeting = ({ node }: Arrival): readonly Branch[] =>
    run.arrivals.filter((each) => each.node === node).map(({ branch }) => branch);
  return {
    ...run,
    inputTopic: override.input_topic ?? run.inputTopic,
    iterationCount: override.iteration_count ?? run.iterationCount,
    arrivals: run.arrivals.map((each) => change(each, meeting(each))),
    front: run.front.map((each) => change(each, [each.branch])),
  };
}

/** Whose score a corrected one is: that of a critic that has had its last say, before that of the one shown. */
interface Judged {
  readonly isBeyondRework: boolean;
  readonly scoreBy: string | null;
  readonly givenScore: number | null;
  readonly passScore: number;
}

function judgedOf(run: RunState, branches: readonly Branch[]): Judged {
  const last = [...branches, run.shown].find((branch) => isBeyondRework(run, branch));
  const { scoreBy, givenScore } = last ?? run.shown;
  return { isBeyondRework: last !== undefined, scoreBy, givenScore, passScore: run.limits.passScore };
}

/** A score without a verdict brings its own, which from a critic's last say on is never rework. */
function overrideBranch(
  branch: Branch,
  override: StateOverride,
  {
    source,
    parted,
    judged,
  }: { readonly source: string; readonly parted: ReadonlySet<number>; readonly judged: Judged },
): Branch {
  const changed: { -readonly [K in keyof Branch]: Branch[K] } = { ...branch };
  const { critic_score: score, feedback_history: feedback, route_decision: route } = override;
  if (score !== undefined) {
    changed.score = score;
    changed.scoreFrom = source;
    changed.scoreBy = judged.scoreBy;
    changed.givenScore = judged.givenScore;
    changed.decision = judged.isBeyondRework ? 'approve' : verdict(score, judged.passScore);
    // Common ground at a later join, unless one that parted there has ended with a score of its own.
    changed.forks = branch.forks.map((fork) => (parted.has(fork.step) ? fork : { ...fork, scoreFrom: source }));
  }
  if (feedback !== undefined) {
    changed.feedback = boundedFeedback(feedback.map((text, index) => ({ from: `${source}.${index}`, text })));
  }
  if (route !== undefined) changed.decision = route;
  return changed;
}

/**
 * What an override changes: without the keys, and the branches, whose value is the one shown, so that sending back what
 * was shown changes nothing.
 *
 * @param shown nodes about to run
 * @throws {OverrideRefused} when it names a branch that is none of theirs, or has another value of what cannot be changed
 */
export function effectiveOverride(run: RunState, override: StateOverride, shown: readonly string[]): StateOverride {
  const { active_node: activeNode = run.activeNode, run_id: runId = run.runId, ...rest } = override;
  if (activeNode !== run.activeNode) refuse(run, ['active_node'], FIXED);
  if (runId !== run.runId) refuse(run, ['run_id'], FIXED);
  const effective = withoutShown(run, rest);
  const branches = changedBranches(run, override.branches ?? [], shown);
  if (branches.length > 0) effective.branches = branches;
  else delete effective.branches;
  return effective;
}

const FIXED = {
  kind: 'extra_forbidden',
  reason: 'It cannot be changed: it is taken as it is shown, or not at all',
} as const;

function withoutShown({ inputTopic, iterationCount, shown }: RunState, override: StateOverride): StateOverride {
  const { feedback_history: feedback } = override;
  const left: StateOverride = { ...override };
  if (override.input_topic === inputTopic) delete left.input_topic;
  if (override.current_draft === shown.draft) delete left.current_draft;
  if (override.critic_score === shown.score) delete left.critic_score;
  if (override.iteration_count === iterationCount) delete left.iteration_count;
  if (override.route_decision === shown.decision) delete left.route_decision;
  if (feedback !== undefined && isShown(feedback, shown)) delete left.feedback_history;
  return left;
}

function isShown(feedback: readonly string[], shown: Branch): boolean {
  return feedback.length === shown.feedback.length && shown.feedback.every(({ text }, at) => text === feedback[at]);
}

function changedBranches(
  run: RunState,
  branches: NonNullable<StateOverride['branches']>,
  shown: readonly string[],
): NonNullable<StateOverride['branches']> {
  const live = new Map(liveBranches(run).map(({ node, draft }) => [node, draft]));
  return branches.filter(({ node, current_draft: draft }, index) => {
    const place = ['branches', index, 'node'];
    if (run.plan.nodeOrder(node) < 0) refuse(run, place, { kind: 'unknown_node', reason: 'The run has no such node' });
    if (branches.findIndex((each) => each.node === node) < index) {
      refuse(run, place, { kind: 'duplicate', reason: 'An earlier entry names it' });
    }
    if (live.has(node) && live.get(node) === draft) return false;
    if (shown.includes(node)) return true;
    const reason = `Its branch is none of those about to run: ${shown.join(', ')}`;
    return refuse(run, place, { kind: 'not_next', reason });
  });
}

function refuse(
  { runId }: RunState,
  place: OverrideFault['place'],
  why: Pick<OverrideFault, 'kind' | 'reason'>,
): never {
  throw new OverrideRefused({ runId, place, ...why });
}
