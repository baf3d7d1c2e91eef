/** Paths in a graph of a client: edges may have missing ends, and nodes may be unreachable. */

interface Ends {
  readonly source: string;
  readonly target: string;
}

/** Edges by source, in their order. */
export type Outgoing<E extends Ends = Ends> = ReadonlyMap<string, readonly E[]>;

/** The edges of each source. */
export function edgesBySource<E extends Ends>(edges: readonly E[]): Outgoing<E> {
  const outgoing = new Map<string, E[]>();
  for (const edge of edges) {
    const known = outgoing.get(edge.source);
    if (known === undefined) outgoing.set(edge.source, [edge]);
    else known.push(edge);
  }
  return outgoing;
}

/** All nodes that a path of at least one edge leads to. */
export function reachableFrom(start: string, outgoing: Outgoing): Set<string> {
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

/** The nodes that a run can reach: the entry, and all nodes that a path leads to from it. */
export function reachedFrom(entry: string, edges: readonly Ends[]): Set<string> {
  return reachableFrom(entry, edgesBySource(edges)).add(entry);
}

/** A graph's edges, and the same edges reversed. */
export interface Reachability {
  readonly forward: Outgoing;
  readonly back: Outgoing;
}

export function reachability(edges: readonly Ends[]): Reachability {
  const reversed = edges.map(({ source, target }) => ({ source: target, target: source }));
  return { forward: edgesBySource(edges), back: edgesBySource(reversed) };
}

/** All nodes in a cycle with this one, itself first, or null if it is in no cycle. */
export function cycleOf(start: string, { forward, back }: Reachability): ReadonlySet<string> | null {
  const reached = reachableFrom(start, forward);
  if (!reached.has(start)) return null;
  const leadBack = reachableFrom(start, back);
  return new Set([start, ...[...reached].filter((id) => leadBack.has(id))]);
}
