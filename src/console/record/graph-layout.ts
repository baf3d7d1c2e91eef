/** Lays out a graph with dagre. Loads as a separate chunk: see `ui/chunks.ts`. */
import type { PlacedBox, Way } from '@dagrejs/dagre';
import { Graph, layout } from '@dagrejs/dagre';
import type { Direction, EdgeToPlace, NodeToPlace, PlacedEdge, Places, Point } from './placement.js';

/** In pixels. */
const SPACES = { nodesep: 36, edgesep: 18, ranksep: 40 };

/**
 * Limit on nodes times (edges minus nodes) within which dagre routes all edges: at most 0.6 s of processor time. Beyond it,
 * dagre gets only the first edge into each node.
 */
const MOST_NODES_BY_EDGES = 6_000;

/**
 * Places nodes in ranks along their edges. The layout is deterministic, and the first node is the origin, so that later
 * nodes do not move it. In a very large graph, some edges have no route.
 */
export function layoutGraph(
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  direction: Direction = 'down',
): Places {
  if (nodes.length === 0) return { nodes: new Map(), edges: new Map() };
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ ...SPACES, rankdir: direction === 'down' ? 'TB' : 'LR' });
  // An id can be any text, so dagre gets numbers.
  const names = new Map(nodes.map(({ id }, at) => [id, String(at)]));
  const boxes = nodes.map((node, at) => {
    const box: PlacedBox = { width: node.width, height: node.height };
    graph.setNode(String(at), box);
    return { node, box };
  });
  const bundles = bundlesOf(edgesToLead(nodes, edges)).map((bundle, at) => {
    const way = wayOf(bundle, direction);
    graph.setEdge(names.get(bundle.upper) ?? '', names.get(bundle.lower) ?? '', way, String(at));
    return { bundle, way };
  });
  layout(graph);
  const moved = movement(
    boxes.map(({ box }) => box),
    direction,
  );
  const placed = boxes.map(({ node, box }) => {
    const { x, y } = moved(box);
    return [node.id, { ...node, x: x - node.width / 2, y: y - node.height / 2 }] as const;
  });
  const led = bundles.flatMap(({ bundle, way }) => waysIn(bundle, { way, moved, direction }));
  return { nodes: new Map(placed), edges: new Map(led.map((edge) => [edge.id, edge])) };
}

/** All edges between nodes of the graph, or only the first into each node if there are too many. */
function edgesToLead(nodes: readonly NodeToPlace[], edges: readonly EdgeToPlace[]): readonly EdgeToPlace[] {
  const ids = new Set(nodes.map(({ id }) => id));
  const whole = edges.filter(({ source, target }) => ids.has(source) && ids.has(target));
  if ((whole.length - nodes.length) * nodes.length <= MOST_NODES_BY_EDGES) return whole;
  const forward = whole.filter(({ source, target, isBack }) => isBack !== true && source !== target);
  return [...new Map(forward.toReversed().map((edge) => [edge.target, edge])).values()];
}

/** Edges between the same two nodes, in either direction. dagre routes them as one, so that they stay side by side. */
interface Bundle {
  readonly upper: string;
  readonly lower: string;
  readonly edges: EdgeToPlace[];
}

function bundlesOf(edges: readonly EdgeToPlace[]): readonly Bundle[] {
  const bundles = new Map<string, Bundle>();
  for (const edge of edges) {
    const { source, target, isBack } = edge;
    const known = bundles.get(JSON.stringify([source, target])) ?? bundles.get(JSON.stringify([target, source]));
    if (known !== undefined) known.edges.push(edge);
    else {
      const [upper, lower] = isBack === true ? [target, source] : [source, target];
      bundles.set(JSON.stringify([source, target]), { upper, lower, edges: [edge] });
    }
  }
  return [...bundles.values()];
}

/** The size of an edge's label across and along the direction. */
function roomOf(
  { label = NO_SIZE }: EdgeToPlace,
  direction: Direction,
): { readonly side: number; readonly rank: number } {
  const { width, height } = label;
  return direction === 'down' ? { side: width, rank: height } : { side: height, rank: width };
}

const NO_SIZE = { width: 0, height: 0 };

function wayOf({ edges }: Bundle, direction: Direction): Way {
  const rooms = edges.map((edge) => roomOf(edge, direction));
  const side = rooms.reduce((sum, room) => sum + room.side, (edges.length - 1) * SPACES.edgesep);
  const rank = Math.max(...rooms.map((room) => room.rank));
  return { ...(direction === 'down' ? { width: side, height: rank } : { width: rank, height: side }), labelpos: 'c' };
}

interface Led {
  readonly way: Way;
  readonly moved: (point: Partial<Point>) => Point;
  readonly direction: Direction;
}

/** The routes of a bundle's edges, side by side. */
function waysIn({ upper, edges }: Bundle, { way, moved, direction }: Led): readonly PlacedEdge[] {
  const whole = direction === 'down' ? way.width : way.height;
  let from = -whole / 2;
  return edges.map((edge) => {
    const { side } = roomOf(edge, direction);
    const by = from + side / 2;
    from += side + SPACES.edgesep;
    const aside = ({ x, y }: Point): Point => (direction === 'down' ? { x: x + by, y } : { x, y: y + by });
    const points = (way.points ?? []).map((point) => aside(moved(point)));
    const label = edge.label === undefined ? null : aside(moved(way));
    return { id: edge.id, points: edge.source === upper ? points : points.reverse(), label };
  });
}

/** Moves the first node to the origin, and mirrors the drawing if most neighbours are in reverse order. */
function movement(boxes: readonly PlacedBox[], direction: Direction): (point: Partial<Point>) => Point {
  const spots = boxes.map(({ x = 0, y = 0 }) => (direction === 'down' ? { rank: y, side: x } : { rank: x, side: y }));
  const order = spots.map(({ rank, side }, at) => {
    const before = spots[at - 1];
    return before?.rank === rank ? Math.sign(side - before.side) : 0;
  });
  const mirror = order.reduce((sum, sign) => sum + sign, 0) < 0 ? -1 : 1;
  const turned = ({ x = 0, y = 0 }: Partial<Point>): Point =>
    direction === 'down' ? { x: mirror * x, y } : { x, y: mirror * y };
  const { width = 0, height = 0 } = boxes[0] ?? {};
  const first = turned(boxes[0] ?? {});
  return (point) => {
    const { x, y } = turned(point);
    return { x: x - first.x + width / 2, y: y - first.y + height / 2 };
  };
}
