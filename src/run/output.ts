/** What a node's output does to its branch, and the facts that conditions read from it. */
import type { ConditionFacts } from '../graph/condition.js';
import { codePoints } from '../graph/limits.js';
import { present } from '../system/element.js';
import type { Branch } from './branch.js';
import { verdictOf, withFeedback } from './branch.js';
import type { NodeOutput } from '../generated/schemas.js';
import type { RunProgress, RunState } from './state.js';

/** The facts for conditions. The draft's length is counted only when a condition first asks for it. */
export function routingFacts(branch: Branch, iteration: number): ConditionFacts {
  return new RoutingFacts(branch, iteration);
}

class RoutingFacts implements ConditionFacts {
  readonly route: Branch['verdict'];
  readonly score: number | null;
  readonly iteration: number;
  readonly #draft: string | null;
  #counted: number | null = null;

  constructor({ verdict, score, draft }: Branch, iteration: number) {
    this.route = verdict;
    this.score = score;
    this.iteration = iteration;
    this.#draft = draft;
  }

  get draftLength(): number {
    return (this.#counted ??= this.#draft === null ? 0 : codePoints(this.#draft));
  }
}

/**
 * The node's branch and the run's counters after its output. Used both to decide a route before the output is recorded and
 * in the fold. Branches are built field by field, which is faster on Node 20.
 *
 * @throws when the run has no such step in its frontier
 */
export function afterOutput(
  state: RunState,
  step: number,
  output: NodeOutput,
): Pick<RunProgress, 'scores' | 'iterationCount'> & { readonly branch: Branch } {
  const { plan, request, progress } = state;
  const { scores, iterationCount } = progress;
  const ran = progress.frontier.find((each) => each.step === step);
  if (ran === undefined) throw new Error(`Run "${state.runId}" has no step ${step} under way`);
  const from = String(step);
  if ('draft' in output) {
    const { score, scoreFrom, scoreBy, givenScore, feedback, verdict, forks } = ran.branch;
    const branch = {
      draft: output.draft,
      draftFrom: from,
      draftBy: ran.node,
      score,
      scoreFrom,
      scoreBy,
      givenScore,
      feedback,
      verdict,
      forks,
    };
    return { branch, scores, iterationCount: iterationCount + (plan.node(ran.node).countsIteration ? 1 : 0) };
  }
  const { score, feedback } = output;
  const times = timesScored(scores, ran.node) + 1;
  const { draft, draftFrom, draftBy, forks } = ran.branch;
  const branch: Branch = {
    draft,
    draftFrom,
    draftBy,
    score,
    scoreFrom: from,
    scoreBy: ran.node,
    givenScore: score,
    feedback: withFeedback(ran.branch.feedback, { from, text: feedback }),
    verdict: times >= request.limits.maxIterations ? 'approve' : verdictOf(score, request.limits.passScore),
    forks,
  };
  return { branch, scores: { ...scores, [ran.node]: times }, iterationCount };
}

/** Whether the critic that scored a branch has scored `maxIterations` times: then only a human can ask for rework. */
export function isBeyondRework({ progress, request }: RunState, { scoreBy }: Branch): boolean {
  return scoreBy !== null && timesScored(progress.scores, scoreBy) >= request.limits.maxIterations;
}

/** How often a critic has scored. Nodes may be called `constructor` or `__proto__`, so only own properties count. */
function timesScored(scores: RunProgress['scores'], critic: string): number {
  return Object.hasOwn(scores, critic) ? present(scores[critic], 'count of its scores') : 0;
}
