/** Nodes in ranks, each below those that lead to it: the plain layout of graphs too large for a careful one. */
import { edgesBySource } from '../../graph/traversal.js';
import type {
  EdgeToPlace,
  GraphLayout,
  LayoutOptions,
  NodeToPlace,
  PlacedEdge,
  PlacedNode,
  Point,
} from './placement.js';

/** Time grows with the number of nodes and edges alone. All edges join nodes that are given. */
export function layeredLayout(
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  { direction, gap, rankGap }: Required<LayoutOptions>,
): GraphLayout {
  const isDown = direction === 'down';
  const turned = (node: NodeToPlace): NodeToPlace =>
    isDown ? node : { id: node.id, width: node.height, height: node.width };
  const ranks = inRanks(nodes.map(turned), edges);
  const widths = ranks.map((rank) => rank.reduce((sum, { width }) => sum + width + gap, -gap));
  const widest = Math.max(...widths);
  const placed = new Map<string, PlacedNode>();
  let y = 0;
  ranks.forEach((rank, index) => {
    let x = (widest - (widths[index] ?? 0)) / 2;
    for (const node of rank) {
      placed.set(node.id, { ...node, x, y });
      x += node.width + gap;
    }
    y += Math.max(...rank.map(({ height }) => height)) + rankGap;
  });
  const ways = new Map(edges.map((edge) => [edge.id, wayOf(edge, placed)]));
  // Edges that lead back go beside the nodes.
  const down = { width: widest + 2 * BESIDE, height: y - rankGap, nodes: placed, edges: ways };
  return isDown ? down : mirrored(down);
}

/** Nodes by the longest way that leads to each; the edges of a loop that lead back do not count. */
function inRanks(nodes: readonly NodeToPlace[], edges: readonly EdgeToPlace[]): readonly (readonly NodeToPlace[])[] {
  const forward = edges.filter(({ source, target, isBack }) => isBack !== true && source !== target);
  const outgoing = edgesBySource(forward);
  const open = new Map(nodes.map(({ id }) => [id, 0]));
  for (const { target } of forward) open.set(target, (open.get(target) ?? 0) + 1);
  const rankOf = new Map<string, number>();
  const done = new Set<string>();
  const ready = nodes.flatMap(({ id }) => (open.get(id) === 0 ? [id] : []));
  const place = (id: string): void => {
    if (done.has(id)) return;
    done.add(id);
    const rank = rankOf.get(id) ?? 0;
    for (const { target } of outgoing.get(id) ?? []) {
      if (done.has(target)) continue;
      const left = (open.get(target) ?? 0) - 1;
      open.set(target, left);
      rankOf.set(target, Math.max(rankOf.get(target) ?? 0, rank + 1));
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
  const ranks: NodeToPlace[][] = [];
  for (const node of nodes) (ranks[rankOf.get(node.id) ?? 0] ??= []).push(node);
  // Ranks that no node is in are holes, which are passed over.
  return ranks.filter((rank) => rank.length > 0);
}

/** Down from border to border; back up and to itself around the right side. */
function wayOf({ id, source, target, label }: EdgeToPlace, placed: ReadonlyMap<string, PlacedNode>): PlacedEdge {
  const [from, to] = [placed.get(source), placed.get(target)];
  if (from === undefined || to === undefined) throw new Error(`Edge "${id}" joins nodes that are not there`);
  const points = from.y < to.y ? wayDown(from, to) : wayAround(from, to);
  const [start, end] = [points[Math.floor((points.length - 1) / 2)], points[Math.ceil((points.length - 1) / 2)]];
  const isLabelled = label !== undefined && start !== undefined && end !== undefined;
  return { id, points, label: isLabelled ? { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 } : null };
}

function wayDown(from: PlacedNode, to: PlacedNode): readonly Point[] {
  return [
    { x: from.x + from.width / 2, y: from.y + from.height },
    { x: to.x + to.width / 2, y: to.y },
  ];
}

function wayAround(from: PlacedNode, to: PlacedNode): readonly Point[] {
  const beside = Math.max(from.x + from.width, to.x + to.width) + BESIDE;
  return [
    { x: from.x + from.width, y: from.y + (from.height * 2) / 3 },
    { x: beside, y: from.y + (from.height * 2) / 3 },
    { x: beside, y: to.y + to.height / 3 },
    { x: to.x + to.width, y: to.y + to.height / 3 },
  ];
}

/** How far beside its nodes an edge leads back. */
const BESIDE = 20;

/** Leading to the right in place of down. */
function mirrored({ width, height, nodes, edges }: GraphLayout): GraphLayout {
  const turn = ({ x, y }: Point): Point => ({ x: y, y: x });
  return {
    ...{ width: height, height: width },
    nodes: new Map([...nodes].map(([id, node]) => [id, { id, width: node.height, height: node.width, ...turn(node) }])),
    edges: new Map(
      [...edges].map(([id, { points, label }]) => {
        return [id, { id, points: points.map(turn), label: label === null ? null : turn(label) }];
      }),
    ),
  };
}
