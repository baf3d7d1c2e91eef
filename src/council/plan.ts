/** A frozen graph with what routing and joining ask of it: who follows whom, in which order, and who can reach whom. */
import type { Condition } from '../blueprint/condition.js';
import { conditionOrNull } from '../blueprint/condition.js';
import type { Graph, GraphEdge, GraphNode } from '../generated/schemas.js';
import { directionsOf } from './onward.js';
import type { Outgoing } from './paths.js';
import { edgesBySource, reachableFrom } from './paths.js';

export interface Plan {
  readonly graph: Graph;
  /** @throws when the graph has no such node: a stream that names one is damaged. */
  node(id: string): GraphNode;
  /** Place of a node in the graph's list. */
  nodeOrder(id: string): number;
  edgesFrom(id: string): readonly GraphEdge[];
  /** An edge's condition, read once; null when it cannot be read: such an edge is never followed. */
  condition(text: string): Condition | null;
  /** Place of the first edge between two nodes in the graph's list, -1 when there is none. */
  edgeOrder(source: string, target: string): number;
  /**
   * Whether a path of edges that lead onward goes from one node to another. Around a loop every node reaches every
   * other, and nodes of one front would wait for one another.
   */
  canStillReach(from: string, to: string): boolean;
  /** Whether an edge leads back, or what follows it does before anything else can be chosen. */
  leadsBack(source: string, target: string): boolean;
}

/** Indexes a graph. Reachability is computed on first use: runs that never fork do not pay for it. */
export function planOf(graph: Graph): Plan {
  const order = new Map(graph.nodes.map((node, index) => [node.id, index]));
  const outgoing = edgesBySource(graph.edges);
  const edgeOrders = new Map<string, Map<string, number>>();
  graph.edges.forEach((edge, index) => {
    const targets = edgeOrders.get(edge.source) ?? new Map<string, number>();
    if (!targets.has(edge.target)) targets.set(edge.target, index);
    edgeOrders.set(edge.source, targets);
  });
  const edgesFrom = (id: string): readonly GraphEdge[] => outgoing.get(id) ?? [];
  let found: ReturnType<typeof directionsOf<GraphEdge>> | null = null;
  const directions = () => (found ??= directionsOf(graph));

  return {
    graph,
    node(id) {
      const node = graph.nodes[order.get(id) ?? -1];
      if (node === undefined) throw new Error(`The graph has no node "${id}"`);
      return node;
    },
    nodeOrder: (id) => order.get(id) ?? -1,
    edgesFrom,
    condition: readOnce(),
    edgeOrder: (source, target) => edgeOrders.get(source)?.get(target) ?? -1,
    canStillReach: reachability(() => edgesBySource(directions().onward)),
    leadsBack: returning(edgesFrom, () => new Set(directions().back)),
  };
}

function readOnce(): Plan['condition'] {
  const read = new Map<string, Condition | null>();
  return (text) => {
    let condition = read.get(text);
    if (condition === undefined) read.set(text, (condition = conditionOrNull(text)));
    return condition;
  };
}

/** Found out once a node, when first asked. */
function reachability(edges: () => Outgoing): Plan['canStillReach'] {
  const reached = new Map<string, ReadonlySet<string>>();
  let outgoing: Outgoing | null = null;
  return (from, to) => {
    let found = reached.get(from);
    if (found === undefined) {
      found = reachableFrom(from, (outgoing ??= edges()));
      reached.set(from, found);
    }
    return found.has(to);
  };
}

/** A branch that is routed comes by one of several ways, one that is not by all: along onward edges this has an end. */
function returning(edgesFrom: Plan['edgesFrom'], edgesBack: () => ReadonlySet<GraphEdge>): Plan['leadsBack'] {
  const known = new Map<string, boolean>();
  let back: ReadonlySet<GraphEdge> | null = null;
  const returns = (edge: GraphEdge): boolean => (back ??= edgesBack()).has(edge) || comesBack(edge.target);
  const comesBack = (node: string): boolean => {
    const edges = edgesFrom(node);
    const linear = edges.filter(({ condition }) => condition === null);
    const answer =
      known.get(node) ??
      (edges.length > 0 &&
        edges.every((edge) => edge.condition === null || returns(edge)) &&
        (linear.length === 0 || linear.some(returns)));
    known.set(node, answer);
    return answer;
  };
  return (source, target) => edgesFrom(source).some((edge) => edge.target === target && returns(edge));
}
