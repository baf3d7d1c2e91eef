/** A branch after a node's output, and what conditions read from it. */
import { isOutput } from '../../graph/output-node.js';
import type { ConditionFacts } from '../../graph/condition.js';
import { codePoints } from '../../graph/limits.js';
import { present } from '../../system/element.js';
import type { Branch } from './branch.js';
import { boundedFeedback, verdictOf } from './branch.js';
import { deliberated } from '../panels/deliberation.js';
import type { NodeOutput } from '../../generated/schemas.js';
import type { RunProgress, RunState } from '../state.js';

/** What the conditions of edges read. The draft's length is counted once, when a condition first reads it. */
export function conditionFacts({ verdict, score, draft, deliberation }: Branch, iteration: number): ConditionFacts {
  let length: number | null = null;
  const draftLength = (): number => (length ??= codePoints(draft ?? ''));
  const [agreement, spread] = [deliberation?.agreement ?? null, deliberation?.spread ?? null];
  return { route: verdict, score, iteration, draftLength, agreement, spread };
}

/**
 * The node's branch and the run's counters after its output: the fold applies it, and a decision does so beforehand to
 * find the route. A role with a new kind of output is handled here; members of panels, ranks and juries in `panels/panels.ts`.
 *
 * @throws when the run has no such step in its frontier
 */
export function afterOutput(
  state: RunState,
  step: number,
  output: NodeOutput,
): Pick<RunProgress, 'scores' | 'iterationCount'> & { readonly branch: Branch } {
  const { plan, progress } = state;
  const { scores, iterationCount } = progress;
  const ran = progress.frontier.find((each) => each.step === step);
  if (ran === undefined) throw new Error(`Run "${state.runId}" has no step ${step} under way`);
  const { node, branch, orderShown } = ran;
  // As in the fold, the changes of the branch are spread as a record.
  const from = String(step);
  if ('draft' in output && isOutput(plan.node(node))) {
    return { branch: { ...branch, output: output.draft }, scores, iterationCount };
  }
  if ('draft' in output) {
    const drafted = { draft: output.draft, draftFrom: from, draftBy: node, deliberation: afterDraft(branch) };
    const drafts = iterationCount + (plan.node(node).countsIteration ? 1 : 0);
    return { branch: { ...branch, ...drafted }, scores, iterationCount: drafts };
  }
  if ('score' in output) {
    const { score, feedback } = output;
    return { iterationCount, ...scoredBranch(state, { node, branch, from, score, feedback }) };
  }
  if ('analysis' in output) {
    const analysis = { value: output.analysis, order: orderShown };
    return { branch: { ...branch, deliberation: deliberated(branch, { analysis }) }, scores, iterationCount };
  }
  throw new Error(`Step ${step} of run "${state.runId}" is not a member of a panel`);
}

/** A written draft takes the place of a panel's answers. */
function afterDraft(branch: Branch): Branch['deliberation'] {
  return branch.deliberation === null ? null : deliberated(branch, { inDraft: [], analysis: null });
}

/** A branch with a critic's score, and the counts of the critics' scores. */
export function scoredBranch(
  { request, progress: { scores } }: RunState,
  {
    node,
    branch,
    from,
    score,
    feedback: text,
  }: {
    readonly node: string;
    readonly branch: Branch;
    readonly from: string;
    readonly score: number;
    readonly feedback: string;
  },
): Pick<RunProgress, 'scores'> & { readonly branch: Branch } {
  const { maxIterations, passScore } = request.limits;
  const times = timesScored(scores, node) + 1;
  const scored = {
    score,
    scoreFrom: from,
    scoreBy: node,
    givenScore: score,
    feedback: boundedFeedback([...branch.feedback, { from, text }]),
    verdict: times >= maxIterations ? ('approve' as const) : verdictOf(score, passScore),
  };
  return { branch: { ...branch, ...scored }, scores: { ...scores, [node]: times } };
}

/** Whether the critic of a branch has scored `maxIterations` times: then only a human can ask for rework. */
export function isBeyondRework({ progress, request }: RunState, { scoreBy }: Branch): boolean {
  return scoreBy !== null && timesScored(progress.scores, scoreBy) >= request.limits.maxIterations;
}

/** How often a critic has scored. Only own properties count, because a node may be called `constructor`. */
function timesScored(scores: RunProgress['scores'], critic: string): number {
  return Object.hasOwn(scores, critic) ? present(scores[critic], 'count of its scores') : 0;
}
