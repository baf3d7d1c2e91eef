/** What the service's own rules say of a graph that is still drawn: which edges close a loop, which conditions can be read. */
import { ConditionInvalid, parseCondition } from '../../graph/condition.js';
import { edgeDirections } from '../../graph/plan.js';

interface DrawnEdge {
  readonly source: string;
  readonly target: string;
  /** Null: a linear edge. */
  readonly condition: string | null;
}

export interface DrawnGraph<E extends DrawnEdge> {
  /** Where a run begins; null: there is no node. */
  readonly entry: string | null;
  readonly back: ReadonlySet<E>;
}

/** Edges that lack an end close nothing. */
export function drawnGraph<E extends DrawnEdge>(nodes: readonly string[], edges: readonly E[]): DrawnGraph<E> {
  const targets = new Set(edges.map(({ target }) => target));
  const entry = nodes.find((id) => !targets.has(id)) ?? nodes[0];
  if (entry === undefined) return { entry: null, back: new Set() };
  const ids = new Set(nodes);
  const whole = edges.filter(({ source, target }) => ids.has(source) && ids.has(target));
  return { entry, back: new Set(edgeDirections({ entry, nodes: [...ids].map((id) => ({ id })), edges: whole }).back) };
}

/** Why a condition of an edge cannot be read, naming the place, counted from 1; null: it can. */
export function conditionFault(text: string): string | null {
  try {
    parseCondition(text);
    return null;
  } catch (error) {
    if (!(error instanceof ConditionInvalid)) throw error;
    const { position, reason } = error.data;
    return `Cannot be read at character ${position + 1}: ${reason}`;
  }
}
