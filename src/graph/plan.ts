/** An index of a run's graph for routing and joining: edges by source, and reachability. */
import type { Condition } from './condition.js';
import { conditionOrNull } from './condition.js';
import { elementAt, present } from '../system/element.js';
import type { Graph, GraphEdge, GraphNode } from '../generated/schemas.js';
import type { Outgoing } from './traversal.js';
import { edgesBySource, reachableFrom } from './traversal.js';

export interface Plan {
  readonly graph: Graph;
  /** @throws when the graph has no such node */
  node(id: string): GraphNode;
  hasNode(id: string): boolean;
  /** Index of a node in the graph. @throws when the graph has no such node */
  nodeOrder(id: string): number;
  edgesFrom(id: string): readonly GraphEdge[];
  /** A condition, parsed once, or null if it is invalid: a run never follows an edge with an invalid condition. */
  condition(text: string): Condition | null;
  /** Index of the first edge between two nodes in the graph, or -1. */
  edgeOrder(source: string, target: string): number;
  /**
   * Whether a path of forward edges leads from one node to another. Back edges do not count: in a loop every node reaches
   * every other, so that nodes of one frontier would wait for each other.
   */
  canStillReach(from: string, to: string): boolean;
  /** Whether an edge of the graph leads back. */
  isBack(edge: GraphEdge): boolean;
  /** Whether an edge leads back, or every continuation after it does. */
  leadsBack(source: string, target: string): boolean;
}

/** Indexes a graph. Reachability is computed on first use, because runs that never fork do not need it. */
export function planOf(graph: Graph): Plan {
  const order = new Map(graph.nodes.map((node, index) => [node.id, index]));
  const nodeOrder = (id: string): number => {
    const place = order.get(id);
    if (place === undefined) throw new Error(`The graph has no node "${id}"`);
    return place;
  };
  const outgoing = edgesBySource(graph.edges);
  const edgesFrom = (id: string): readonly GraphEdge[] => outgoing.get(id) ?? [];
  let computed: ReturnType<typeof edgeDirections<GraphEdge>> | null = null;
  const directions = () => (computed ??= edgeDirections(graph));
  let backEdges: ReadonlySet<GraphEdge> | null = null;
  const back = () => (backEdges ??= new Set(directions().back));

  return {
    graph,
    node: (id) => elementAt(graph.nodes, nodeOrder(id)),
    hasNode: (id) => order.has(id),
    nodeOrder,
    edgesFrom,
    condition: parseConditionsOnce(),
    edgeOrder: (source, target) => graph.edges.findIndex((edge) => edge.source === source && edge.target === target),
    canStillReach: reachability(() => edgesBySource(directions().forward)),
    isBack: (edge) => back().has(edge),
    leadsBack: leadsBackIn(edgesFrom, back),
  };
}

function parseConditionsOnce(): Plan['condition'] {
  const read = new Map<string, Condition | null>();
  return (text) => {
    let condition = read.get(text);
    if (condition === undefined) read.set(text, (condition = conditionOrNull(text)));
    return condition;
  };
}

/** Computes reachability per node, on first use. */
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

/**
 * Whether every continuation leads back: all conditional edges must, because they are alternatives, but only one linear
 * edge, because a run follows them all. The recursion ends because forward edges have no cycle.
 */
function leadsBackIn(edgesFrom: Plan['edgesFrom'], edgesBack: () => ReadonlySet<GraphEdge>): Plan['leadsBack'] {
  const known = new Map<string, boolean>();
  const returns = (edge: GraphEdge): boolean => edgesBack().has(edge) || comesBack(edge.target);
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

/** The part of an edge that the traversal reads. */
interface Edge {
  readonly source: string;
  readonly target: string;
  /** Null for a linear edge. */
  readonly condition: string | null;
}

/** A graph in which both ends of every edge exist. */
interface Walkable<E extends Edge> {
  readonly entry: string;
  readonly nodes: readonly { readonly id: string }[];
  readonly edges: readonly E[];
}

/** The edges reachable from the entry, in the order of the traversal. Forward edges have no cycle. */
interface Directions<E extends Edge> {
  readonly forward: readonly E[];
  readonly back: readonly E[];
}

/**
 * Which edges lead forward and which lead back, so that branches do not wait for repeated work of a loop. Traverses depth
 * first from the entry, targets in the order of the nodes, `rework` edges last. An edge leads back if forward edges lead
 * from its target to its source. The order matters only in a cycle with several entries (see {@link ambiguousBackEdges}).
 */
export function edgeDirections<E extends Edge>({ entry, nodes, edges }: Walkable<E>): Directions<E> {
  const places = new Map(nodes.map(({ id }, index) => [id, index]));
  const place = ({ target }: E): number => present(places.get(target), `node "${target}"`);
  const outgoing = edgesBySource([...edges].sort((one, other) => place(one) - place(other)));
  const [forward, back, reworks]: [E[], E[], E[]] = [[], [], []];
  const forwardFrom = new Map<string, E[]>();
  const seen = new Set<string>();

  const walkFrom = (start: string): void => {
    seen.add(start);
    const path = [(outgoing.get(start) ?? []).values()];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const { value: edge } = top.next();
      if (edge === undefined) path.pop();
      else if (isRework(edge)) reworks.push(edge);
      else if (leadsToNewNode(edge)) path.push((outgoing.get(edge.target) ?? []).values());
    }
  };
  /** Classifies an edge; returns whether it leads forward to a node not seen before. */
  const leadsToNewNode = (edge: E): boolean => {
    const { source, target } = edge;
    const isBack = source === target || (seen.has(target) && reachableFrom(target, forwardFrom).has(source));
    (isBack ? back : forward).push(edge);
    if (isBack) return false;
    forwardFrom.set(source, [...(forwardFrom.get(source) ?? []), edge]);
    return seen.size < seen.add(target).size;
  };

  walkFrom(entry);
  // The list grows during the iteration: the traversal from a new node may find more.
  for (const edge of reworks) if (leadsToNewNode(edge)) walkFrom(edge.target);
  return { forward, back };
}

/**
 * The back edges that would be forward edges in another order of the nodes. A `rework` edge is unambiguous if other edges
 * lead to its target and close its loop, and so is an edge back to a node that dominates its source.
 */
export function ambiguousBackEdges<E extends Edge>(graph: Walkable<E>): readonly E[] {
  const { forward, back } = edgeDirections(graph);
  const closing = edgesBySource(forward.filter((edge) => !isRework(edge)));
  const reached = reachableFrom(graph.entry, closing).add(graph.entry);
  const isSure = (edge: E): boolean =>
    isRework(edge) && reached.has(edge.target) && reachableFrom(edge.target, closing).has(edge.source);
  const sure = new Set(back.filter(isSure));
  const others = back.filter((edge) => !sure.has(edge));
  const ways = [...forward, ...others];
  return others.filter(
    ({ source, target }) => source !== target && isReached(source, graph.entry, { ways, past: target }),
  );
}

/** Whether a path that avoids `past` leads from the entry to a node. */
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
