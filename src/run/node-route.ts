/** Where a branch goes after a node. */
import { routeAfter } from '../graph/routing.js';
import type { Route } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import { isBeyondRework } from './output.js';
import { routingFacts } from './output.js';
import type { RunState } from './state.js';

/**
 * The route after a node, null when none of its edges holds. Once a critic may no longer ask for rework, only a human's
 * `rework` leads back: if a corrected score would lead back, conditions see the score that the critic gave.
 */
export function routeOf(
  run: RunState,
  { node, branch, iterationCount }: { readonly node: string; readonly branch: Branch; readonly iterationCount: number },
): Route | null {
  const { plan } = run;
  const route = routeAfter(plan, node, routingFacts(branch, iterationCount));
  const isCorrected = branch.score !== branch.givenScore && branch.decision !== 'rework' && isBeyondRework(run, branch);
  if (route === null || !isCorrected || !route.next.some((target) => plan.leadsBack(node, target))) return route;
  return routeAfter(plan, node, routingFacts({ ...branch, score: branch.givenScore }, iterationCount));
}
