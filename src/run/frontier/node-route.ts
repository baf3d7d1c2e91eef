/** Moves a branch along the route of a node. */
import type { Branch } from './branch.js';
import type { Arrival, RunProgress, RunState } from '../state.js';
import { withProgress } from '../state.js';
import { routeAfter } from '../../graph/routing.js';
import type { Route } from '../../generated/schemas.js';
import { isBeyondRework, conditionFacts } from './output.js';

/** A branch after a node, with the nodes it goes to; it ends if there are none. */
export interface RoutedBranch {
  readonly node: string;
  readonly step: number;
  readonly branch: Branch;
  readonly next: readonly string[];
}

/** Where a branch arrives, or that it ends. */
export function followRoute(
  { plan, progress }: RunState,
  { node, step, branch, next }: RoutedBranch,
): Pick<RunProgress, 'arrivals' | 'ended'> {
  if (next.length === 0) {
    // In a rework loop a branch may end at a node again, which replaces its end of the round before. Older runs,
    // recorded when edges that lead back made nodes wait, ended at most once at each node, so they fold the same.
    const others = progress.ended.filter((each) => each.node !== node);
    return { arrivals: progress.arrivals, ended: [...others, { node, from: step, branch }] };
  }
  const { draftFrom, scoreFrom } = branch;
  const forked = next.length < 2 ? branch : { ...branch, forks: [...branch.forks, { step, draftFrom, scoreFrom }] };
  const arrivals: Arrival[] = next.map((target) => ({
    node: target,
    from: step,
    order: plan.edgeOrder(node, target),
    branch: forked,
  }));
  // A branch that was sent back before its target ran arrives by the same edge again and replaces its earlier arrival.
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

/**
 * The route after a node, or null if none of its edges holds. Once a critic may no longer ask for rework, only a human's
 * `rework` leads back: if a corrected score would lead back, conditions see the critic's score instead.
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
