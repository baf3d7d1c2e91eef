/** The last node routed again, because a human has changed what its route depends on. */
import { noRoute, routeAfter } from '../council/routing.js';
import { OverrideLeadsNowhere } from '../errors.js';
import type { Route, StateOverride } from '../generated/schemas.js';
import { routingFacts } from './routing-facts.js';
import { overrideState } from './override.js';
import type { RunState } from './state.js';

/**
 * The last node's route under an override that holds a score or a route, when exactly one node went before; null: it
 * is not routed again. All nodes of the front must have ended.
 *
 * @throws {OverrideLeadsNowhere} when no edge of the last node holds then
 */
export function routeUnder(run: RunState, override: StateOverride | null, gate: string): Route | null {
  const [last, ...others] = run.front;
  if (override === null || !isRouting(override) || last === undefined || others.length > 0) return null;
  const overridden = overrideState(run, override, gate);
  const branch = overridden.front[0]?.branch ?? last.branch;
  const facts = routingFacts(branch, overridden.iterationCount);
  const route = routeAfter(run.plan, last.node, facts);
  if (route === null) throw new OverrideLeadsNowhere({ runId: run.runId, reason: noRoute(last.node, facts) });
  return route;
}

function isRouting(override: StateOverride): boolean {
  return override.critic_score !== undefined || override.route_decision !== undefined;
}
