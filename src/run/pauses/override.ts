/**
 * Applies a human's override to a run's state. Drafts go to the branches about to run; a branch that has ended or waits
 * at a join keeps its own. Everything else applies to every live branch.
 */
import type { Route, StateOverride } from '../../generated/schemas.js';
import type { Branch } from '../frontier/branch.js';
import { boundedFeedback, verdictOf } from '../frontier/branch.js';
import { isBeyondRework, conditionFacts } from '../frontier/output.js';
import type { GivenDrafts, OverrideAt } from './override-drafts.js';
import { givenDrafts, overrideDrafts, overrideLastDraft } from './override-drafts.js';
import { liveBranches } from './pause-view.js';
import type { Arrival, RunState } from '../state.js';
import { withProgress } from '../state.js';
import { rerouted, routeOf } from '../frontier/node-route.js';
import { noRoute } from '../../graph/routing.js';
import { nextFrontier } from '../frontier/frontier.js';
import { CouncilError } from '../../errors.js';

/** How a run continues after an override. */
interface OverrideRoute {
  /** The last node's new route, or null if it is unchanged. */
  readonly route: Route | null;
  readonly nextNodes: readonly string[];
}

/** The state after an override. */
export function overrideState(run: RunState, override: StateOverride, at: OverrideAt & OverrideRoute): RunState {
  const drafts = givenDrafts(run, override, at);
  const changed = beforeRouting(run, override, { source: at.source, drafts });
  const routed = at.route === null ? changed : rerouted(changed, at.route.next);
  return overrideDrafts(routed, drafts, at.nextNodes);
}

/** The state in which the last node is routed again. */
function withLastNodeOverridden(run: RunState, override: StateOverride, at: OverrideAt): RunState {
  return beforeRouting(run, override, { source: at.source, drafts: givenDrafts(run, override, at) });
}

function beforeRouting(
  run: RunState,
  override: StateOverride,
  { source, drafts }: { readonly source: string; readonly drafts: GivenDrafts },
): RunState {
  return overrideLastDraft(overrideLiveBranches(run, override, source), drafts);
}

/** Overrides everything except drafts, in every live branch. */
function overrideLiveBranches(run: RunState, override: StateOverride, source: string): RunState {
  const parted = new Set(run.progress.ended.flatMap(({ branch }) => branch.forks.map(({ step }) => step)));
  const change = <T extends { readonly branch: Branch }>(each: T, scored: readonly Branch[]): T => ({
    ...each,
    branch: overrideBranch(each.branch, override, { source, parted, judged: correctedScoreOf(run, scored) }),
  });
  const meeting = ({ node }: Arrival): readonly Branch[] =>
    run.progress.arrivals.filter((each) => each.node === node).map(({ branch }) => branch);
  const { inputTopic, iterationCount, arrivals, frontier } = run.progress;
  return withProgress(run, {
    inputTopic: override.input_topic ?? inputTopic,
    iterationCount: override.iteration_count ?? iterationCount,
    arrivals: arrivals.map((each) => change(each, meeting(each))),
    frontier: frontier.map((each) => change(each, [each.branch])),
  });
}

/** The score that a human corrects: of a critic that may no longer ask for rework, otherwise of the branch shown. */
interface CorrectedScore {
  readonly isBeyondRework: boolean;
  readonly scoreBy: string | null;
  readonly givenScore: number | null;
  readonly passScore: number;
}

function correctedScoreOf(run: RunState, branches: readonly Branch[]): CorrectedScore {
  const last = [...branches, run.progress.shown].find((branch) => isBeyondRework(run, branch));
  const { scoreBy, givenScore } = last ?? run.progress.shown;
  return { isBeyondRework: last !== undefined, scoreBy, givenScore, passScore: run.request.limits.passScore };
}

/** A score without a route decision implies one, but not `rework` if the critic may no longer ask for it. */
function overrideBranch(
  branch: Branch,
  override: StateOverride,
  {
    source,
    parted,
    judged,
  }: { readonly source: string; readonly parted: ReadonlySet<number>; readonly judged: CorrectedScore },
): Branch {
  const changed: { -readonly [K in keyof Branch]: Branch[K] } = { ...branch };
  const { critic_score: score, feedback_history: feedback, route_decision: route } = override;
  if (score !== undefined) {
    changed.score = score;
    changed.scoreFrom = source;
    changed.scoreBy = judged.scoreBy;
    changed.givenScore = judged.givenScore;
    changed.verdict = judged.isBeyondRework ? 'approve' : verdictOf(score, judged.passScore);
    // A later join takes it as shared, unless a branch of this fork has ended with its own score.
    changed.forks = branch.forks.map((fork) => (parted.has(fork.step) ? fork : { ...fork, scoreFrom: source }));
  }
  if (feedback !== undefined) {
    changed.feedback = boundedFeedback(feedback.map((text, index) => ({ from: `${source}.${index}`, text })));
  }
  if (route !== undefined) changed.verdict = route;
  return changed;
}

/**
 * The effective part of an override: without fields and branches that equal what the pause shows, so that sending back
 * the shown state changes nothing. A route decision next to a changed score always counts.
 *
 * @param shown nodes about to run
 * @throws {OverrideRefused} when it names a branch that is not about to run, changes a read-only field, or sets too many
 *   iterations
 */
export function effectiveOverride(run: RunState, override: StateOverride, shown: readonly string[]): StateOverride {
  const { active_node: activeNode = run.progress.activeNode, run_id: runId = run.runId, ...rest } = override;
  if (activeNode !== run.progress.activeNode) refuse(run, ['active_node'], FIXED);
  if (runId !== run.runId) refuse(run, ['run_id'], FIXED);
  const effective = withoutShown(run, rest);
  const { iteration_count: iterations } = effective;
  if (iterations !== undefined && iterations > MAX_SET_ITERATIONS) refuse(run, ['iteration_count'], TOO_MANY);
  const isForOthers = effective.current_draft !== undefined;
  const branches = effectiveBranches(run, override.branches ?? [], { shown, isForOthers });
  if (branches.length > 0) effective.branches = branches;
  else delete effective.branches;
  return effective;
}

/** The most iterations that a human may set. The run may count further. */
const MAX_SET_ITERATIONS = 1_000;

const TOO_MANY = {
  kind: 'less_than_equal',
  reason: `Input should be less than or equal to ${MAX_SET_ITERATIONS}, or the count that is shown`,
} as const;

const FIXED = {
  kind: 'extra_forbidden',
  reason: 'It cannot be changed: send it as shown, or leave it out',
} as const;

function withoutShown({ progress }: RunState, override: StateOverride): StateOverride {
  const { inputTopic, iterationCount, shown } = progress;
  const { feedback_history: feedback } = override;
  const left: StateOverride = { ...override };
  if (override.input_topic === inputTopic) delete left.input_topic;
  if (override.current_draft === shown.draft) delete left.current_draft;
  if (override.critic_score === shown.score) delete left.critic_score;
  if (override.iteration_count === iterationCount) delete left.iteration_count;
  // Next to a changed score the shown route is a decision too: without it the run would follow the score.
  if (left.critic_score === undefined && override.route_decision === shown.verdict) delete left.route_decision;
  if (feedback !== undefined && isShown(feedback, shown)) delete left.feedback_history;
  return left;
}

function isShown(feedback: readonly string[], shown: Branch): boolean {
  return feedback.length === shown.feedback.length && shown.feedback.every(({ text }, at) => text === feedback[at]);
}

/** Next to a draft for all branches, a branch named with its shown draft keeps it, unless all are named like this. */
function effectiveBranches(
  run: RunState,
  branches: BranchOverrides,
  { shown, isForOthers }: { readonly shown: readonly string[]; readonly isForOthers: boolean },
): BranchOverrides {
  const changed = changedBranches(run, branches, shown);
  const named = branches.filter(({ node }) => shown.includes(node));
  const areAllUnchanged = changed.length === 0 && named.length === shown.length;
  return isForOthers && !areAllUnchanged ? named : changed;
}

type BranchOverrides = NonNullable<StateOverride['branches']>;

function changedBranches(run: RunState, branches: BranchOverrides, shown: readonly string[]): BranchOverrides {
  const live = new Map(liveBranches(run).map(({ node, draft }) => [node, draft]));
  return branches.filter(({ node, current_draft: draft }, index) => {
    const place = ['branches', index, 'node'];
    if (!run.plan.hasNode(node)) refuse(run, place, { kind: 'unknown_node', reason: 'The run has no such node' });
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

/**
 * Where a run continues after an override. A changed score or route decision routes the last node again if the last
 * frontier was a single node; otherwise the shown nodes run. All nodes of the frontier must have ended.
 *
 * @throws {OverrideRefused} when no edge of the last node holds under the override
 */
export function routeUnderOverride(run: RunState, override: StateOverride, at: OverrideAt): OverrideRoute {
  const [last, ...others] = run.progress.frontier;
  if (!isRouting(override) || last === undefined || others.length > 0) return { route: null, nextNodes: at.shown };
  const overridden = withLastNodeOverridden(run, override, at);
  const { iterationCount, frontier } = overridden.progress;
  const branch = frontier[0]?.branch ?? last.branch;
  const route = routeOf(run, { node: last.node, branch, iterationCount });
  if (route !== null) return { route, nextNodes: nextFrontier(rerouted(run, route.next)) };
  const reason = noRoute(run.plan, last.node, conditionFacts(branch, iterationCount));
  throw new OverrideRefused({ runId: run.runId, place: [], kind: 'no_route', reason });
}

function isRouting(override: StateOverride): boolean {
  return override.critic_score !== undefined || override.route_decision !== undefined;
}

/** What is wrong with an override, and where. */
interface OverrideFault {
  readonly runId: string;
  /** Path to the field in the override; empty for the whole override. */
  readonly place: readonly (string | number)[];
  /**
   * `no_route`: the last node would have no route. `extra_forbidden`: a read-only field is changed. `less_than_equal`: a
   * number is too large. For a branch: `unknown_node`, `duplicate`, or `not_next` if it is not about to run.
   */
  readonly kind: 'no_route' | 'extra_forbidden' | 'unknown_node' | 'duplicate' | 'not_next' | 'less_than_equal';
  readonly reason: string;
}

/** The override is refused: nothing is recorded, and the pause stays open. */
export class OverrideRefused extends CouncilError<OverrideFault> {
  readonly code = 'run.override-refused';
  constructor(data: OverrideFault) {
    super(`Cannot modify run "${data.runId}" like this: ${data.reason}`, data);
  }
}
