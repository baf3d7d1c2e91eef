/** A frozen graph with what routing and joining ask of it: who follows whom, in which order, and who can reach whom. */
import type { Graph, GraphEdge, GraphNode } from '../generated/schemas.js';

export interface Plan {
  readonly graph: Graph;
  /** @throws when the graph has no such node: a stream that names one is damaged. */
  node(id: string): GraphNode;
  /** Place of a node in the graph's list. */
  nodeOrder(id: string): number;
  edgesFrom(id: string): readonly GraphEdge[];
  /** Place of the first edge between two nodes in the graph's list, -1 when there is none. */
  edgeOrder(source: string, target: string): number;
  /** Whether a path of one edge or more leads from one node to another. */
  reaches(from: string, to: string): boolean;
}

/** Indexes a graph. Reachability is computed on first use: runs that never fork do not pay for it. */
export function planOf(graph: Graph): Plan {
  const order = new Map(graph.nodes.map((node, index) => [node.id, index]));
  const outgoing = new Map<string, GraphEdge[]>();
  const edgeOrders = new Map<string, Map<string, number>>();
  graph.edges.forEach((edge, index) => {
    append(outgoing, edge.source, edge);
    const targets = edgeOrders.get(edge.source) ?? new Map<string, number>();
    if (!targets.has(edge.target)) targets.set(edge.target, index);
    edgeOrders.set(edge.source, targets);
  });
  const reachable = new Map<string, ReadonlySet<string>>();

  return {
    graph,
    node(id) {
      const node = graph.nodes[order.get(id) ?? -1];
      if (node === undefined) throw new Error(`The graph has no node "${id}"`);
      return node;
    },
    nodeOrder: (id) => order.get(id) ?? -1,
    edgesFrom: (id) => outgoing.get(id) ?? [],
    edgeOrder: (source, target) => edgeOrders.get(source)?.get(target) ?? -1,
    reaches(from, to) {
      let found = reachable.get(from);
      if (found === undefined) {
        found = reachedFrom(from, outgoing);
        reachable.set(from, found);
      }
      return found.has(to);
    },
  };
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

function reachedFrom(start: string, outgoing: ReadonlyMap<string, readonly GraphEdge[]>): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const { target } of outgoing.get(id) ?? []) {
      if (found.has(target)) continue;
      found.add(target);
      open.push(target);
    }
  }
  return found;
}
