/** Moves a branch along its route: to the nodes it arrives at, or to its end. */
import type { Branch } from './branch.js';
import type { Arrival, RunProgress, RunState } from './state.js';
import { withProgress } from './state.js';
import { routeAfter } from '../graph/routing.js';
import type { Route } from '../generated/schemas.js';
import { isBeyondRework, conditionFacts } from './output.js';

/** A branch that leaves a node, and the nodes it goes to; none: it ends. */
export interface RoutedBranch {
  readonly node: string;
  readonly step: number;
  readonly branch: Branch;
  readonly next: readonly string[];
}

export function followRoute(
  { plan, progress }: RunState,
  { node, step, branch, next }: RoutedBranch,
): Pick<RunProgress, 'arrivals' | 'ended'> {
  if (next.length === 0) {
    // In a rework loop a branch may end at a node again, which replaces its end of the round before. Runs recorded while
    // edges that lead back counted as ways to a node ended at most once at each, so both rules fold them alike.
    const others = progress.ended.filter((each) => each.node !== node);
    return { arrivals: progress.arrivals, ended: [...others, { node, from: step, branch }] };
  }
  const { draftFrom, scoreFrom } = branch;
  const parted = next.length < 2 ? branch : { ...branch, forks: [...branch.forks, { step, draftFrom, scoreFrom }] };
  const arrivals: Arrival[] = next.map((target) => ({
    node: target,
    from: step,
    order: plan.edgeOrder(node, target),
    branch: parted,
  }));
  // A branch sent back before its target has run arrives by the same edge again, which replaces its earlier arrival.
  const others = progress.arrivals.filter((each) => !arrivals.some(({ order }) => order === each.order));
  return { arrivals: [...others, ...arrivals], ended: progress.ended };
}

/** The state after the only node of the last frontier takes another route. */
export function rerouted(state: RunState, next: readonly string[]): RunState {
  const [last] = state.progress.frontier;
  if (last === undefined) return state;
  const { arrivals, ended } = state.progress;
  const others = withProgress(state, {
    arrivals: arrivals.filter((each) => each.from !== last.step),
    ended: ended.filter((each) => each.from !== last.step),
  });
  return withProgress(others, followRoute(others, { node: last.node, step: last.step, branch: last.branch, next }));
}

// Where a branch goes after a node.

/**
 * The route after a node, null when none of its edges holds. Once a critic may no longer ask for rework, only a human's
 * `rework` leads back: if a corrected score would lead back, conditions see the score that the critic gave.
 */
export function routeOf(
  run: RunState,
  { node, branch, iterationCount }: { readonly node: string; readonly branch: Branch; readonly iterationCount: number },
): Route | null {
  const { plan } = run;
  const route = routeAfter(plan, node, conditionFacts(branch, iterationCount));
  const isCorrected = branch.score !== branch.givenScore && branch.verdict !== 'rework' && isBeyondRework(run, branch);
  if (route === null || !isCorrected || !route.next.some((target) => plan.leadsBack(node, target))) return route;
  return routeAfter(plan, node, conditionFacts({ ...branch, score: branch.givenScore }, iterationCount));
}
