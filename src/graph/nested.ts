/** Graphs with councils, whose nodes hold the graphs of their runs. */
import type { Graph } from '../generated/schemas.js';

/** The graph with a change made to it and to the graphs of all councils in it. */
export function withNested(graph: Graph, change: (graph: Graph) => Graph): Graph {
  const nodes = graph.nodes.map((node) =>
    node.council === undefined
      ? node
      : { ...node, council: { ...node.council, graph: withNested(node.council.graph, change) } },
  );
  return change({ ...graph, nodes });
}
