/** Applies the service's rules to a graph in the editor: which edges close a loop, which conditions are valid. */
import { ConditionInvalid, parseCondition } from '../../graph/condition.js';
import { edgeDirections } from '../../graph/plan.js';

interface DrawnEdge {
  readonly source: string;
  readonly target: string;
  /** Or null for a linear edge. */
  readonly condition: string | null;
}

export interface DrawnGraph<E extends DrawnEdge> {
  /** The node where a run begins, or null if there is no node. */
  readonly entry: string | null;
  readonly back: ReadonlySet<E>;
}

/** The node where a run begins: the one that is named, else the first without incoming edges, else the first. */
export function entryIn(
  nodes: readonly string[],
  edges: readonly Pick<DrawnEdge, 'target'>[],
  named: string | undefined,
): string | undefined {
  if (named !== undefined && nodes.includes(named)) return named;
  const targets = new Set(edges.map(({ target }) => target));
  return nodes.find((id) => !targets.has(id)) ?? nodes[0];
}

/** The entry and the back edges. Edges without both ends are ignored. @param named the entry that the council names */
export function drawnGraph<E extends DrawnEdge>(
  nodes: readonly string[],
  edges: readonly E[],
  named?: string,
): DrawnGraph<E> {
  const entry = entryIn(nodes, edges, named);
  if (entry === undefined) return { entry: null, back: new Set() };
  const ids = new Set(nodes);
  const connected = edges.filter(({ source, target }) => ids.has(source) && ids.has(target));
  return {
    entry,
    back: new Set(edgeDirections({ entry, nodes: [...ids].map((id) => ({ id })), edges: connected }).back),
  };
}

/** Why the condition of an edge is invalid, with the position counted from 1, or null if it is valid. */
export function conditionFault(text: string): string | null {
  try {
    parseCondition(text);
    return null;
  } catch (error) {
    if (!(error instanceof ConditionInvalid)) throw error;
    const { position, reason } = error.data;
    return `Invalid at character ${position + 1}: ${reason}`;
  }
}
