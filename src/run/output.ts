/** What a node's output makes of its branch and of the run's counters; decisions route on it before it is recorded. */
import type { NodeOutput } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import { boundedFeedback, verdict } from './branch.js';
import type { RunState } from './state.js';

/**
 * The node's branch, and the counters, once it has ended. A branch is written field by field, as states are copied.
 *
 * @throws when the step is not under way
 */
export function afterOutput(
  state: RunState,
  step: number,
  output: NodeOutput,
): Pick<RunState, 'scores' | 'iterationCount'> & { readonly branch: Branch } {
  const { scores, iterationCount, limits, plan } = state;
  const ran = state.front.find((each) => each.step === step);
  if (ran === undefined) throw new Error(`Run "${state.runId}" has no step ${step} under way`);
  const from = String(step);
  if ('draft' in output) {
    const { score, scoreFrom, scoreBy, feedback, decision, route, forks } = ran.branch;
    const branch = {
      draft: output.draft,
      draftFrom: from,
      draftBy: ran.node,
      score,
      scoreFrom,
      scoreBy,
      feedback,
      decision,
      route,
      forks,
    };
    return { branch, scores, iterationCount: iterationCount + (plan.node(ran.node).countsIteration ? 1 : 0) };
  }
  const { score, feedback } = output;
  const times = timesScored(scores, ran.node) + 1;
  const decision = verdict(score, limits.passScore);
  const { draft, draftFrom, draftBy, forks } = ran.branch;
  const branch: Branch = {
    draft,
    draftFrom,
    draftBy,
    score,
    scoreFrom: from,
    scoreBy: ran.node,
    feedback: boundedFeedback([...ran.branch.feedback, { from, text: feedback }]),
    decision,
    route: times >= limits.maxIterations ? 'approve' : decision,
    forks,
  };
  return { branch, scores: { ...scores, [ran.node]: times }, iterationCount };
}

/** Nodes may be called `constructor` or `__proto__`: only a score of their own counts. */
function timesScored(scores: RunState['scores'], critic: string): number {
  return Object.hasOwn(scores, critic) ? (scores[critic] ?? 0) : 0;
}
