/** The route of a run after a node, by the conditions of its edges. */
import type { ConditionFacts } from './condition.js';
import { valueShown } from './condition.js';
import type { GraphEdge, Route } from '../generated/schemas.js';
import type { Plan } from './plan.js';

/**
 * The route after a node: the first conditional edge whose condition holds, otherwise all linear edges. A branch ends at a
 * node without outgoing edges. Null if the node has only conditional edges and none holds.
 */
export function routeAfter(plan: Plan, node: string, facts: ConditionFacts): Route | null {
  const edges = plan.edgesFrom(node);
  if (edges.length === 0) return { next: [], reason: 'no outgoing edge' };
  const chosen = edges.find((edge) => edge.condition !== null && plan.condition(edge.condition)?.holds(facts) === true);
  if (chosen !== undefined) return { next: [chosen.target], reason: `condition ${chosen.condition}` };
  const linear = edges.filter((edge) => edge.condition === null);
  if (linear.length === 0) return null;
  return { next: targetsOf(linear), reason: linear.length === 1 ? 'linear edge' : 'linear edges' };
}

/** The error of a run at a node without a route: names the route, the score and what else the node's conditions compare. */
export function noRoute(plan: Plan, node: string, facts: ConditionFacts): string {
  const conditions = plan.edgesFrom(node).flatMap(({ condition }) => (condition === null ? [] : [condition]));
  const compared = conditions.flatMap((condition) => plan.condition(condition)?.variables ?? []);
  const { route, score } = facts;
  const others = [...new Set(compared)].filter((variable) => variable !== 'route' && variable !== 'score');
  const values = others.map((variable) => `, ${variable} ${valueShown(variable, facts)}`);
  return `No outgoing edge of node "${node}" holds: route ${route}, score ${score}${values.join('')}`;
}

function targetsOf(edges: readonly GraphEdge[]): string[] {
  return [...new Set(edges.map((edge) => edge.target))];
}
