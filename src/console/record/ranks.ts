/** Which nodes of a graph stand beside each other, and which below. */
import { edgesBySource } from '../../graph/traversal.js';
import type { EdgeToPlace, NodeToPlace } from './placement.js';

/**
 * Ranks by the longest way that leads to each node, from 0 and without holes; the edges of a loop that lead back do not
 * count. What nothing leads to stands right above what it leads to.
 */
export function ranksOf(nodes: readonly NodeToPlace[], edges: readonly EdgeToPlace[]): ReadonlyMap<string, number> {
  const forward = edges.filter(({ source, target, isBack }) => isBack !== true && source !== target);
  const ranks = longestWays(nodes, forward);
  const isLedTo = new Set(forward.map(({ target }) => target));
  const outgoing = edgesBySource(forward);
  for (const { id } of nodes) {
    const below = (outgoing.get(id) ?? []).map(({ target }) => ranks.get(target) ?? 0);
    if (!isLedTo.has(id) && below.length > 0) ranks.set(id, Math.max(0, Math.min(...below) - 1));
  }
  const used = [...new Set(ranks.values())].sort((a, b) => a - b);
  const places = new Map(used.map((rank, at) => [rank, at]));
  return new Map([...ranks].map(([id, rank]) => [id, places.get(rank) ?? 0]));
}

function longestWays(nodes: readonly NodeToPlace[], forward: readonly EdgeToPlace[]): Map<string, number> {
  const outgoing = edgesBySource(forward);
  const open = new Map(nodes.map(({ id }) => [id, 0]));
  for (const { target } of forward) open.set(target, (open.get(target) ?? 0) + 1);
  const ranks = new Map<string, number>();
  const done = new Set<string>();
  const ready = nodes.flatMap(({ id }) => (open.get(id) === 0 ? [id] : []));
  const place = (id: string): void => {
    if (done.has(id)) return;
    done.add(id);
    const rank = ranks.get(id) ?? 0;
    ranks.set(id, rank);
    for (const { target } of outgoing.get(id) ?? []) {
      if (done.has(target)) continue;
      const left = (open.get(target) ?? 0) - 1;
      open.set(target, left);
      ranks.set(target, Math.max(ranks.get(target) ?? 0, rank + 1));
      if (left === 0) ready.push(target);
    }
  };
  let next = 0;
  const placeReady = (): void => {
    for (let id = ready[next]; id !== undefined; id = ready[next]) {
      next += 1;
      place(id);
    }
  };
  // What is left when none is ready lies on or behind a loop that nobody told of: it begins with the first in the list.
  for (const { id } of nodes) {
    placeReady();
    place(id);
  }
  return ranks;
}
