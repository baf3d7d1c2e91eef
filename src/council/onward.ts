/** The edges of a graph that lead onward: all but those by which a path from the entry returns to a node it has passed. */
import type { Graph, GraphEdge } from '../generated/schemas.js';

/** Walks depth first from the entry, neighbours in the graph's order of nodes, so that the answer is one. */
export function onwardEdges(graph: Graph, edgesFrom: (node: string) => readonly GraphEdge[]): readonly GraphEdge[] {
  const order = new Map(graph.nodes.map((node, index) => [node.id, index]));
  const place = (edge: GraphEdge): number => order.get(edge.target) ?? -1;
  const pathFrom = (node: string) => ({ node, left: [...edgesFrom(node)].sort((a, b) => place(a) - place(b)) });
  const onward: GraphEdge[] = [];
  const seen = new Set([graph.entry]);
  const path = [pathFrom(graph.entry)];
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const edge = top.left.shift();
    if (edge === undefined) {
      path.pop();
      continue;
    }
    if (path.some(({ node }) => node === edge.target)) continue;
    onward.push(edge);
    if (seen.has(edge.target)) continue;
    seen.add(edge.target);
    path.push(pathFrom(edge.target));
  }
  return onward;
}
