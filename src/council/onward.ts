/** Which edges of a graph lead onward and which lead back, so that branches do not wait for work still to be done again. */
import { edgesBySource, reachableFrom } from './paths.js';

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
  readonly onward: readonly E[];
  readonly back: readonly E[];
}

/**
 * Walks depth first from the entry, targets in the graph's order of nodes, edges that wait for a critic's `rework` last
 * of all. An edge leads back when its target leads onward to its source. The order matters only for a cycle that is
 * entered at several nodes (see {@link doubtfulEdges}).
 */
export function directionsOf<E extends Edge>({ entry, nodes, edges }: Walkable<E>): Directions<E> {
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
  return { onward, back };
}

/**
 * The edges that lead back by the order of the nodes alone: another order would take them for onward ones. A rework
 * that other edges answer is sure; so is any edge back to a node that every way to its source comes by.
 */
export function doubtfulEdges<E extends Edge>(graph: Walkable<E>): readonly E[] {
  const { onward, back } = directionsOf(graph);
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
