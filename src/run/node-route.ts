/** Where a branch goes after a node. */
import { routeAfter } from '../graph/routing.js';
import type { Route } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import { isBeyondRework } from './output.js';
import { routingFacts } from './output.js';
import type { RunState } from './state.js';

/**
 * The route after a node, null when no edge of it holds. From a critic's last say on only a human's word for rework leads
 * back: conditions that a corrected score would lead back by see the score that the critic gave.
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
