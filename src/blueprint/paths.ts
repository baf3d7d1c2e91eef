/** Paths in a graph that may be anything a client has drawn. */

export type Targets = ReadonlyMap<string, readonly string[]>;

/** Edges by where they begin, and by where they end. */
export interface Ways {
  readonly targets: Targets;
  readonly sources: Targets;
}

type Ends = readonly { readonly source: string; readonly target: string }[];

export function waysOf(edges: Ends): Ways {
  const reversed = edges.map(({ source, target }) => ({ source: target, target: source }));
  return { targets: targetsBySource(edges), sources: targetsBySource(reversed) };
}

/** The targets of each source's edges. */
export function targetsBySource(edges: Ends): Targets {
  const targets = new Map<string, string[]>();
  for (const { source, target } of edges) {
    const known = targets.get(source);
    if (known === undefined) targets.set(source, [target]);
    else known.push(target);
  }
  return targets;
}

/** All that a path of one edge or more leads to. */
export function reachableFrom(start: string, targets: Targets): Set<string> {
  const found = new Set<string>();
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const target of targets.get(id) ?? []) {
      if (found.has(target)) continue;
      found.add(target);
      open.push(target);
    }
  }
  return found;
}

/** All nodes that lie on a cycle with this one, itself first; null when none leads back to it. */
export function cycleOf(start: string, { targets, sources }: Ways): ReadonlySet<string> | null {
  const reached = reachableFrom(start, targets);
  if (!reached.has(start)) return null;
  const leadBack = reachableFrom(start, sources);
  return new Set([start, ...[...reached].filter((id) => leadBack.has(id))]);
}
