/** A frozen graph with what routing and joining ask of it: who follows whom, in which order, and who can reach whom. */
import type { Condition } from './condition.js';
import { conditionOrNull } from './condition.js';
import type { Graph, GraphEdge, GraphNode } from '../generated/schemas.js';
import type { Outgoing } from './traversal.js';
import { edgesBySource, reachableFrom } from './traversal.js';

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
  let found: ReturnType<typeof edgeDirections<GraphEdge>> | null = null;
  const directions = () => (found ??= edgeDirections(graph));

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
    canStillReach: reachability(() => edgesBySource(directions().forward)),
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

// Which edges of a graph lead onward and which lead back, so that branches do not wait for work still to be done
// again.

/** What the walk looks at of an edge. */
interface Edge {
  readonly source: string;
  readonly target: string;
  /** Null: a linear edge. */
  readonly condition: string | null;
}

/** A graph, of whose edges all have both their nodes. */
interface Walkable<E extends Edge> {
  readonly entry: string;
  readonly nodes: readonly { readonly id: string }[];
  readonly edges: readonly E[];
}

/** The edges that can be come by, in the order of the walk; those onward have no cycle. */
interface Directions<E extends Edge> {
  readonly forward: readonly E[];
  readonly back: readonly E[];
}

/**
 * Walks depth first from the entry, targets in the graph's order of nodes, edges that wait for a critic's `rework` last
 * of all. An edge leads back when its target leads onward to its source. The order matters only for a cycle that is
 * entered at several nodes (see {@link ambiguousBackEdges}).
 */
export function edgeDirections<E extends Edge>({ entry, nodes, edges }: Walkable<E>): Directions<E> {
  const places = new Map(nodes.map(({ id }, index) => [id, index]));
  const place = ({ target }: E): number => places.get(target) ?? -1;
  const outgoing = edgesBySource([...edges].sort((one, other) => place(one) - place(other)));
  const [onward, back, reworks]: [E[], E[], E[]] = [[], [], []];
  const taken = new Map<string, E[]>();
  const seen = new Set<string>();

  const walkFrom = (start: string): void => {
    seen.add(start);
    const path = [(outgoing.get(start) ?? []).values()];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const { value: edge } = top.next();
      if (edge === undefined) path.pop();
      else if (isRework(edge)) reworks.push(edge);
      else if (isNewGround(edge)) path.push((outgoing.get(edge.target) ?? []).values());
    }
  };
  /** Takes an edge for what it is; whether it leads onward to a node not seen before. */
  const isNewGround = (edge: E): boolean => {
    const { source, target } = edge;
    const isBack = source === target || (seen.has(target) && reachableFrom(target, taken).has(source));
    (isBack ? back : onward).push(edge);
    if (isBack) return false;
    taken.set(source, [...(taken.get(source) ?? []), edge]);
    return seen.size < seen.add(target).size;
  };

  walkFrom(entry);
  // The walk from a node found late adds to them.
  for (const edge of reworks) if (isNewGround(edge)) walkFrom(edge.target);
  return { forward: onward, back };
}

/**
 * The edges that lead back by the order of the nodes alone: another order would take them for onward ones. A rework
 * that other edges answer is sure; so is any edge back to a node that every way to its source comes by.
 */
export function ambiguousBackEdges<E extends Edge>(graph: Walkable<E>): readonly E[] {
  const { forward: onward, back } = edgeDirections(graph);
  const answers = edgesBySource(onward.filter((edge) => !isRework(edge)));
  const sure = new Set(back.filter((edge) => isRework(edge) && reachableFrom(edge.target, answers).has(edge.source)));
  const others = back.filter((edge) => !sure.has(edge));
  const ways = [...onward, ...others];
  return others.filter(
    ({ source, target }) => source !== target && isReached(source, graph.entry, { ways, past: target }),
  );
}

/** Whether a way leads from the entry to a node past another. */
function isReached(
  node: string,
  entry: string,
  { ways, past }: { readonly ways: readonly Edge[]; readonly past: string },
): boolean {
  if (entry === past) return false;
  const open = edgesBySource(ways.filter(({ target }) => target !== past));
  return node === entry || reachableFrom(entry, open).has(node);
}

function isRework({ condition }: Edge): boolean {
  return condition?.trim() === 'rework';
}
