/** The geometry of a graph: node sizes, edge routes and bounds. */
import type {
  Box,
  Direction,
  EdgeToPlace,
  LayoutGraph,
  NodeToPlace,
  PlacedEdge,
  PlacedNode,
  Places,
  Point,
} from '../record/placement.js';
import { atBorder, centreOf } from '../record/placement.js';
import type { GraphEdgeShown, GraphNodeShown } from './graph-shown.js';

const HEAD = 9;
/** How far an edge bends beside a parallel one, in pixels. */
const SWING = 46;

/** A smooth SVG path along points, which ends where its arrowhead starts. */
export function lineOf(points: readonly Point[]): string {
  const way = [...points];
  const [tip, before] = [way.at(-1), way.at(-2)];
  const [first] = way;
  if (tip === undefined || before === undefined || first === undefined) return '';
  way[way.length - 1] = towards(tip, before, HEAD - 1);
  const middles = way.slice(1, -1).map((point, index) => {
    const next = way[index + 2] ?? point;
    const end = index === way.length - 3 ? next : between(point, next);
    return `Q${spot(point)} ${spot(end)}`;
  });
  const [second = tip] = way.slice(1);
  return `M${spot(first)} ${middles.length === 0 ? `L${spot(second)}` : middles.join(' ')}`;
}

/** The SVG path of the arrowhead at the end of a line. */
export function headOf(points: readonly Point[]): string {
  const [tip, before] = [points.at(-1), points.at(-2)];
  if (tip === undefined || before === undefined) return '';
  const foot = towards(tip, before, HEAD);
  const [dx, dy] = [((tip.y - foot.y) / HEAD) * 4.5, ((foot.x - tip.x) / HEAD) * 4.5];
  return `M${spot(tip)} L${spot({ x: foot.x + dx, y: foot.y + dy })} L${spot({ x: foot.x - dx, y: foot.y - dy })}Z`;
}

/** A node's size, and its position if the user has set one. */
export interface SizedNode extends NodeToPlace {
  readonly position: Point | null;
}

/** The size of a node. It depends on the label alone, because other texts change. */
export function sizeOf({ id, label, kind }: Pick<GraphNodeShown, 'id' | 'label' | 'kind'>): NodeToPlace {
  if (kind === 'mark') return { id, width: 156, height: 32 };
  return { id, width: Math.max(168, Math.min(264, textWidth(label, 8.6) + 56)), height: 56 };
}

/** An edge with the size of its label. */
export function spaceOf({ id, source, target, label, isBack = false }: GraphEdgeShown): EdgeToPlace {
  const width = label === null ? 28 : Math.min(220, textWidth(label, 6.8) + 44);
  return { id, source, target, isBack, label: { width, height: 22 } };
}

/** The approximate width of a text: wide signs count twice. */
function textWidth(text: string, each: number): number {
  let width = 0;
  for (const sign of text) width += sign > '\u2e80' ? each * 2 : each;
  return Math.round(width);
}

/** The layout of a graph in which not every node has a position. */
export interface Layout {
  readonly direction: Direction;
  readonly layoutGraph: LayoutGraph;
}

/** The positions of all nodes and edges: the user's if every node has one, else from the layout. */
export function placesOf(
  nodes: readonly SizedNode[],
  edges: readonly EdgeToPlace[],
  { direction, layoutGraph }: Layout,
): Places {
  const put = nodes.flatMap(({ position, ...node }) => (position === null ? [] : [{ ...node, ...position }]));
  if (put.length === nodes.length) return freePlaces(put, edges);
  const laid = layoutGraph(nodes, edges, direction);
  const straight = straightThroughRanks(laid, edges, direction);
  if (straight.length === edges.length) return { nodes: laid.nodes, edges: byId(straight) };
  // In a very large graph, the layout routes only some edges.
  const free = freePlaces([...laid.nodes.values()], edges);
  return { nodes: laid.nodes, edges: new Map([...free.edges, ...byId(straight)]) };
}

/** Makes edges straight where they pass a rank: beside its nodes, and through their own labels. */
function straightThroughRanks(
  { nodes, edges }: Places,
  spaces: readonly EdgeToPlace[],
  direction: Direction,
): readonly PlacedEdge[] {
  const rankOf = ({ x, y }: Point): number => Math.round(direction === 'down' ? y : x);
  const halves = new Map<number, number>();
  const reach = (at: Point, { width, height }: { readonly width: number; readonly height: number }): void => {
    const half = (direction === 'down' ? height : width) / 2;
    halves.set(rankOf(at), Math.max(halves.get(rankOf(at)) ?? 0, half));
  };
  for (const node of nodes.values()) reach(centreOf(node), node);
  for (const { id, label } of spaces) {
    const at = edges.get(id)?.label;
    if (at && label) reach(at, label);
  }
  return spaces.flatMap(({ id, source, target }) => {
    const [edge, from, to] = [edges.get(id), nodes.get(source), nodes.get(target)];
    if (edge === undefined || from === undefined || to === undefined) return [];
    if (from === to) return [edge];
    const isUp = rankOf(centreOf(from)) > rankOf(centreOf(to));
    const between = edge.points.slice(1, -1).flatMap((point) => {
      const half = (halves.get(rankOf(point)) ?? 0) * (isUp ? -1 : 1);
      return half === 0 ? [point] : [along(point, -half, direction), along(point, half, direction)];
    });
    const [first = centreOf(to), last = centreOf(from)] = [between[0], between.at(-1)];
    return [{ ...edge, points: [atBorder(from, first), ...between, atBorder(to, last)] }];
  });
}

function along({ x, y }: Point, by: number, direction: Direction): Point {
  return direction === 'down' ? { x, y: y + by } : { x: x + by, y };
}

function byId(edges: readonly PlacedEdge[]): ReadonlyMap<string, PlacedEdge> {
  return new Map(edges.map((edge) => [edge.id, edge]));
}

/** Routes edges between nodes at the user's positions. */
function freePlaces(nodes: readonly PlacedNode[], edges: readonly EdgeToPlace[]): Places {
  const placed = new Map(nodes.map((node) => [node.id, node]));
  const times = new Map<string, number>();
  const isPair = new Set(edges.map(({ source, target }) => JSON.stringify([source, target])));
  const ways = edges.flatMap(({ id, source, target }): PlacedEdge[] => {
    const [from, to] = [placed.get(source), placed.get(target)];
    if (from === undefined || to === undefined) return [];
    const pair = JSON.stringify([source, target]);
    const earlier = times.get(pair) ?? 0;
    times.set(pair, earlier + 1);
    if (from === to) return [loopAt(id, from, earlier)];
    const isAside = isPair.has(JSON.stringify([target, source]));
    return [freeWay(id, from, to, (earlier + (isAside ? 1 : 0)) * SWING)];
  });
  return { nodes: placed, edges: byId(ways) };
}

/** The box around nodes and edges. */
export function boundsOf({ nodes, edges }: Places): Box {
  const ends = [...nodes.values()].flatMap((node) => [node, { x: node.x + node.width, y: node.y + node.height }]);
  const points = [...ends, ...[...edges.values()].flatMap((edge) => edge.points)];
  const [left = 0, top = 0] = [least(points.map(({ x }) => x)), least(points.map(({ y }) => y))];
  const [right = 0, bottom = 0] = [least(points.map(({ x }) => -x)), least(points.map(({ y }) => -y))];
  return { x: left, y: top, width: -right - left, height: -bottom - top };
}

function least(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : numbers.reduce((one, other) => Math.min(one, other));
}

/** The nearest node in a direction, or null if there is none. */
export function neighbourOf(from: PlacedNode, nodes: readonly PlacedNode[], direction: Point): PlacedNode | null {
  const start = centreOf(from);
  const found = nodes.flatMap((node) => {
    const [dx, dy] = [centreOf(node).x - start.x, centreOf(node).y - start.y];
    const along = dx * direction.x + dy * direction.y;
    const aside = Math.abs(dx * direction.y) + Math.abs(dy * direction.x);
    return along > 1 ? [{ node, far: along + 2 * aside }] : [];
  });
  return found.sort((one, other) => one.far - other.far)[0]?.node ?? null;
}

function freeWay(id: string, from: PlacedNode, to: PlacedNode, swing: number): PlacedEdge {
  const [start, end] = [centreOf(from), centreOf(to)];
  const length = Math.max(1, Math.hypot(end.x - start.x, end.y - start.y));
  const aside = {
    x: (start.x + end.x) / 2 - ((end.y - start.y) / length) * swing,
    y: (start.y + end.y) / 2 + ((end.x - start.x) / length) * swing,
  };
  const [first, last] = [atBorder(from, aside), atBorder(to, aside)];
  const label = { x: (first.x + 2 * aside.x + last.x) / 4, y: (first.y + 2 * aside.y + last.y) / 4 };
  return { id, points: [first, aside, last], label };
}

function loopAt(id: string, { x, y, width, height }: PlacedNode, earlier: number): PlacedEdge {
  const right = x + width;
  const out = right + SWING * (earlier + 1);
  const points = [
    { x: right, y: y + height * 0.25 },
    { x: out, y: y - height * 0.1 },
    { x: out, y: y + height * 1.1 },
    { x: right, y: y + height * 0.75 },
  ];
  return { id, points, label: { x: out, y: y + height / 2 } };
}

function towards(from: Point, to: Point, far: number): Point {
  const length = Math.max(0.001, Math.hypot(to.x - from.x, to.y - from.y));
  return { x: from.x + ((to.x - from.x) / length) * far, y: from.y + ((to.y - from.y) / length) * far };
}

function between(one: Point, other: Point): Point {
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
}

function spot({ x, y }: Point): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
