/** The last node routed again, because a human has changed what its route depends on. */
import { noRoute } from '../council/routing.js';
import type { StateOverride } from '../generated/schemas.js';
import { nextFront } from './front.js';
import { routeOf } from './node-route.js';
import { overriddenLast } from './override.js';
import { OverrideRefused } from './override-refused.js';
import type { OverrideWay } from './override.js';
import type { OverrideAt } from './override-drafts.js';
import { routingFacts } from './routing-facts.js';
import type { RunState } from './state.js';
import { rerouted } from './take-route.js';

/**
 * Where a run goes under an override. One that holds a score or a route routes the last node again, when exactly one
 * went before; else what was shown runs. All nodes of the front must have ended.
 *
 * @throws {OverrideRefused} when no edge of the last node holds then
 */
export function wayUnder(run: RunState, override: StateOverride, at: OverrideAt): OverrideWay {
  const [last, ...others] = run.front;
  if (!isRouting(override) || last === undefined || others.length > 0) return { route: null, nextNodes: at.shown };
  const overridden = overriddenLast(run, override, at);
  const { iterationCount, front } = overridden;
  const branch = front[0]?.branch ?? last.branch;
  const route = routeOf(run, { node: last.node, branch, iterationCount });
  if (route !== null) return { route, nextNodes: nextFront(rerouted(run, route.next)) };
  const reason = noRoute(last.node, routingFacts(branch, iterationCount));
  throw new OverrideRefused({ runId: run.runId, place: [], kind: 'no_route', reason });
}

function isRouting(override: StateOverride): boolean {
  return override.critic_score !== undefined || override.route_decision !== undefined;
}
