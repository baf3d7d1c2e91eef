/** The labels of the nodes and members of a run. */
import { labelInOneLine } from '../../graph/label.js';
import type { Graph, GraphNode } from '../../generated/schemas.js';
import type { ExecutionTrace } from './executions.js';
import { labelsByLetter } from './executions.js';
import type { Names } from './page-words.js';

/** The labels in a graph; an id without one stays. */
export function namesIn(graph: Graph | null): Omit<Names, 'letter'> {
  const nodes = new Map(graph?.nodes.map((node) => [node.id, node]));
  const panels = [...nodes.values()].filter(({ role }) => role === 'panel');
  const labelIn = (all: readonly GraphNode[], id: string): string | undefined =>
    all.flatMap(({ members = [] }) => members).find((each) => each.id === id)?.label;
  return {
    node: (id) => labelInOneLine(nodes.get(id)?.label ?? id),
    member(node, id) {
      const own = nodes.get(node);
      return labelIn(own === undefined ? [] : [own], id) ?? labelIn(panels, id) ?? id;
    },
    ranked: (id) => labelIn(panels, id) ?? id,
  };
}

/** The labels behind the letters that the members of ranks saw, by their steps. */
export function lettersIn(trace: ExecutionTrace | null): ReadonlyMap<number, ReadonlyMap<string, string>> {
  const { executions = [] } = trace ?? {};
  return new Map(
    executions.flatMap(({ panel, panelsRead }) =>
      (panel?.members ?? []).map(({ step, orderShown }) => [step, labelsByLetter({ orderShown, panelsRead })] as const),
    ),
  );
}
