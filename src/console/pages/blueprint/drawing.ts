/** A draft as a graph: the texts and positions of its nodes and edges. */
import type { BlueprintNode, NodeRole } from '../../../generated/schemas.js';
import { drawnGraph } from '../../record/drawn-graph.js';
import type { LayoutGraph, Places } from '../../record/placement.js';
import { roleName } from '../../record/page-words.js';
import type { GraphEdgeShown, GraphNodeShown } from '../../ui/graph-shown.js';
import { sizeOf, spaceOf } from '../../ui/graph-geometry.js';
import type { Draft, NodeOrEdge, Position } from './draft.js';
import { isPlaced } from './draft.js';
import { editorRole, uses } from './members.js';
import type { Finding } from './findings.js';

export interface Drawing {
  /** In the order of the draft, with ids from `drawnId`. */
  readonly nodes: readonly GraphNodeShown[];
  readonly edges: readonly GraphEdgeShown[];
  /** The position of each node, by index. */
  readonly positions: ReadonlyMap<number, Position>;
}

/** A part's unique id in the graph: its own id may occur twice while the user types. */
export function drawnId({ kind, at }: NodeOrEdge): string {
  return `${kind}${at}`;
}

/** The part of an id in the graph. */
export function partOf(id: string): NodeOrEdge {
  return { kind: id.startsWith('node') ? 'node' : 'edge', at: Number(id.slice(4)) };
}

export interface Marks {
  readonly roles: ReadonlyMap<string, NodeRole>;
  readonly findings: readonly Finding[];
  /** The names of saved councils, by id. */
  readonly councils: ReadonlyMap<string, string>;
}

export function drawingOf(
  draft: Draft,
  { roles, findings, councils, layoutGraph }: Marks & { readonly layoutGraph: LayoutGraph },
): Drawing {
  const faultOf = (part: NodeOrEdge): string | null => findingAt(findings, part)?.message ?? null;
  const ids = draft.nodes.map(({ id }) => id);
  const chosen = draft.edges.map((edge, at) => {
    const { source, target, type, condition = null } = edge;
    return { at, source, target, condition: type === 'conditional' ? condition : null };
  });
  const { entry, back } = drawnGraph(ids, chosen, draft.entry);
  const nodes = draft.nodes.map((node, at): GraphNodeShown => {
    const { id, label = id, type } = node;
    const role = type ?? roles.get(id) ?? 'agent';
    const words = [roleText(node, role, councils), id === entry && ids.length > 1 && 'first'].filter(Boolean);
    const about = [words.join(', '), ...(role === 'council' ? [] : callWords(node))].filter((each) => each !== '');
    const part = { kind: 'node', at } as const;
    return { id: drawnId(part), label, about: about.join(' · '), kind: role, fault: faultOf(part) };
  });
  const nodeId = (id: string): string => drawnId({ kind: 'node', at: ids.indexOf(id) });
  const edges = chosen.map((edge): GraphEdgeShown => {
    const part = { kind: 'edge', at: edge.at } as const;
    const ends = { source: nodeId(edge.source), target: nodeId(edge.target) };
    return { id: drawnId(part), ...ends, label: edge.condition, isBack: back.has(edge), fault: faultOf(part) };
  });
  return { ...withPositions(draft, nodes, () => laidOut({ nodes, edges }, layoutGraph)), edges };
}

function callWords({ model = '', tools }: BlueprintNode): readonly string[] {
  return [model, tools?.webSearch === true ? 'web' : '', tools?.pdfReader === true ? 'PDF' : ''];
}

function roleText(node: BlueprintNode, role: NodeRole, councils: Marks['councils']): string | null {
  const { members = [], council } = node;
  if (role === 'council' && council !== undefined) return councils.get(council) ?? council;
  const own = editorRole(node, role);
  const name = roleName(role, members.length > 0);
  return uses(own, 'members') && members.length > 0 ? `${name} of ${members.length}` : name;
}

/** The first finding of a part. */
function findingAt(findings: readonly Finding[], { kind, at }: NodeOrEdge): Finding | undefined {
  return findings.find(({ part }) => part?.kind === kind && part.at === at);
}

/** Largest number of nodes whose positions are compared with the layout. */
const MOST_COMPARED = 80;
/** Largest distance from the layout at which a node counts as laid out. */
const NEAR = 40;

/**
 * Uses the user's positions. If no node has one, or all are near the layout, uses the layout, whose edges avoid nodes.
 * Nodes without a position go below the others.
 */
function withPositions(draft: Draft, nodes: readonly GraphNodeShown[], layOut: () => Places) {
  const put = draft.nodes.map((node): Position | null => {
    const { x = 0, y = 0 } = node.position ?? {};
    return isPlaced(node, draft.nodes) ? { x, y } : null;
  });
  const isWhole = put.every((spot) => spot !== null);
  if (isWhole && nodes.length > MOST_COMPARED) return positioned(nodes, put);
  const laid = positionsOf(layOut(), nodes);
  const isAsLaidOut = put.every((spot, at) => spot !== null && isNear(spot, laid[at]));
  if (isAsLaidOut || put.every((spot) => spot === null)) return { nodes, positions: new Map(laid.entries()) };
  const bottom = Math.max(...put.map((spot) => (spot === null ? -Infinity : spot.y + 56)));
  return positioned(
    nodes,
    put.map((spot, at) => spot ?? { x: laid[at]?.x ?? 0, y: (laid[at]?.y ?? 0) + bottom + 60 }),
  );
}

function positioned(nodes: readonly GraphNodeShown[], positions: readonly (Position | null)[]) {
  const found = positions.map((spot) => spot ?? { x: 0, y: 0 });
  return {
    nodes: nodes.map((node, at): GraphNodeShown => ({ ...node, position: found[at] ?? null })),
    positions: new Map(found.entries()),
  };
}

function isNear(spot: Position, other: Position | undefined): boolean {
  return other !== undefined && Math.abs(spot.x - other.x) <= NEAR && Math.abs(spot.y - other.y) <= NEAR;
}

/** The positions of the layout, by index of the node. */
export function laidOutPositions(drawing: Drawing, layoutGraph: LayoutGraph): ReadonlyMap<number, Position> {
  return new Map(positionsOf(laidOut(drawing, layoutGraph), drawing.nodes).entries());
}

function laidOut({ nodes, edges }: Pick<Drawing, 'nodes' | 'edges'>, layoutGraph: LayoutGraph): Places {
  return layoutGraph(nodes.map(sizeOf), edges.map(spaceOf));
}

function positionsOf(places: Places, nodes: readonly GraphNodeShown[]): readonly Position[] {
  return nodes.map(({ id }) => {
    const { x = 0, y = 0 } = places.nodes.get(id) ?? {};
    return { x, y };
  });
}

/** A free position for a new node, below another or below all, or null if the nodes are laid out. */
export function freePosition(draft: Draft, { positions }: Drawing, near: number | null): Position | null {
  if (!draft.nodes.some((node) => isPlaced(node, draft.nodes))) return null;
  const all = [...positions.values()];
  const lowest = all.reduce<Position | null>((low, spot) => (low === null || spot.y > low.y ? spot : low), null);
  const from = (near === null ? undefined : positions.get(near)) ?? lowest ?? { x: 0, y: 0 };
  let spot = { x: from.x, y: from.y + 110 };
  while (all.some(({ x, y }) => Math.abs(x - spot.x) < 180 && Math.abs(y - spot.y) < 70))
    spot = { ...spot, x: spot.x + 60 };
  return spot;
}
