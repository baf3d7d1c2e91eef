/** A draft as a graph to look at: what is told at its nodes and edges, and where they stand. */
import type { NodeRole } from '../../../generated/schemas.js';
import { drawnGraph } from '../../record/drawn-graph.js';
import type { LayoutGraph, Places } from '../../record/placement.js';
import type { GraphEdgeShown, GraphNodeShown } from '../../ui/graph-shown.js';
import { sizeOf, spaceOf } from '../../ui/graph-ways.js';
import type { Draft, Part, Spot } from './draft.js';
import { isPlaced } from './draft.js';
import type { Finding } from './store.js';

export interface Drawing {
  /** In the order of the draft; their ids are those of `drawnId`. */
  readonly nodes: readonly GraphNodeShown[];
  readonly edges: readonly GraphEdgeShown[];
  /** Where each node stands, by its place in the list. */
  readonly spots: ReadonlyMap<number, Spot>;
}

/** A part's id in the drawing: its own may be there twice while somebody types. */
export function drawnId({ kind, at }: Part): string {
  return `${kind}${at}`;
}

/** The part that an id in the drawing means. */
export function partOf(id: string): Part {
  return { kind: id.startsWith('node') ? 'node' : 'edge', at: Number(id.slice(4)) };
}

export interface Marks {
  readonly roles: ReadonlyMap<string, NodeRole>;
  readonly findings: readonly Finding[];
}

export function drawingOf(
  draft: Draft,
  { roles, findings, layoutGraph }: Marks & { readonly layoutGraph: LayoutGraph },
): Drawing {
  const faultOf = (part: Part): string | null => findingAt(findings, part)?.message ?? null;
  const ids = draft.nodes.map(({ id }) => id);
  const chosen = draft.edges.map((edge, at) => {
    const { source, target, type, condition = null } = edge;
    return { at, source, target, condition: type === 'conditional' ? condition : null };
  });
  const { entry, back } = drawnGraph(ids, chosen);
  const nodes = draft.nodes.map(({ id, label = id, type, model, tools }, at): GraphNodeShown => {
    const role = type ?? roles.get(id) ?? 'agent';
    const extras = [model, tools?.webSearch === true && 'web', tools?.pdfReader === true && 'PDF'].filter(Boolean);
    const words = [id === entry && ids.length > 1 ? `${role}, first` : role, ...extras];
    const part = { kind: 'node', at } as const;
    return { id: drawnId(part), label, about: words.join(' · '), kind: role, fault: faultOf(part) };
  });
  const nodeId = (id: string): string => drawnId({ kind: 'node', at: ids.indexOf(id) });
  const edges = chosen.map((edge): GraphEdgeShown => {
    const part = { kind: 'edge', at: edge.at } as const;
    const ends = { source: nodeId(edge.source), target: nodeId(edge.target) };
    return { id: drawnId(part), ...ends, label: edge.condition, isBack: back.has(edge), fault: faultOf(part) };
  });
  return { ...withPositions(draft, nodes, () => laidOut({ nodes, edges }, layoutGraph)), edges };
}

/** What is wrong at a part, first what is wrong most. */
function findingAt(findings: readonly Finding[], { kind, at }: Part): Finding | undefined {
  return findings.find(({ part }) => part?.kind === kind && part.at === at);
}

/** Beyond, nodes that were put somewhere are not compared with how they would be laid out. */
const MOST_COMPARED = 80;
/** How far a node may stand from where it would be laid out to count as laid out. */
const NEAR = 40;

/**
 * Nodes stand where they were put. Where none was, or each stands as it would be laid out, they are laid out: their
 * edges then go around them. Those that were not put anywhere stand below the others.
 */
function withPositions(draft: Draft, nodes: readonly GraphNodeShown[], layOut: () => Places) {
  const put = draft.nodes.map((node): Spot | null => {
    const { x = 0, y = 0 } = node.position ?? {};
    return isPlaced(node, draft.nodes) ? { x, y } : null;
  });
  const isWhole = put.every((spot) => spot !== null);
  if (isWhole && nodes.length > MOST_COMPARED) return positioned(nodes, put);
  const laid = spotsOf(layOut(), nodes);
  const isAsLaidOut = put.every((spot, at) => spot !== null && isNear(spot, laid[at]));
  if (isAsLaidOut || put.every((spot) => spot === null)) return { nodes, spots: new Map(laid.entries()) };
  const bottom = Math.max(...put.map((spot) => (spot === null ? -Infinity : spot.y + 56)));
  return positioned(
    nodes,
    put.map((spot, at) => spot ?? { x: laid[at]?.x ?? 0, y: (laid[at]?.y ?? 0) + bottom + 60 }),
  );
}

function positioned(nodes: readonly GraphNodeShown[], spots: readonly (Spot | null)[]) {
  const found = spots.map((spot) => spot ?? { x: 0, y: 0 });
  return {
    nodes: nodes.map((node, at): GraphNodeShown => ({ ...node, position: found[at] ?? null })),
    spots: new Map(found.entries()),
  };
}

function isNear(spot: Spot, other: Spot | undefined): boolean {
  return other !== undefined && Math.abs(spot.x - other.x) <= NEAR && Math.abs(spot.y - other.y) <= NEAR;
}

/** Where nodes stand when they are laid out, whatever they were put at; by their place in the list. */
export function laidOutSpots(drawing: Drawing, layoutGraph: LayoutGraph): ReadonlyMap<number, Spot> {
  return new Map(spotsOf(laidOut(drawing, layoutGraph), drawing.nodes).entries());
}

function laidOut({ nodes, edges }: Pick<Drawing, 'nodes' | 'edges'>, layoutGraph: LayoutGraph): Places {
  return layoutGraph(nodes.map(sizeOf), edges.map(spaceOf));
}

function spotsOf(places: Places, nodes: readonly GraphNodeShown[]): readonly Spot[] {
  return nodes.map(({ id }) => {
    const { x = 0, y = 0 } = places.nodes.get(id) ?? {};
    return { x, y };
  });
}

/** A free spot for a new node, below another or below all; null: nodes are laid out, and it with them. */
export function freeSpot(draft: Draft, { spots }: Drawing, near: number | null): Spot | null {
  if (!draft.nodes.some((node) => isPlaced(node, draft.nodes))) return null;
  const all = [...spots.values()];
  const lowest = all.reduce<Spot | null>((low, spot) => (low === null || spot.y > low.y ? spot : low), null);
  const from = (near === null ? undefined : spots.get(near)) ?? lowest ?? { x: 0, y: 0 };
  let spot = { x: from.x, y: from.y + 110 };
  while (all.some(({ x, y }) => Math.abs(x - spot.x) < 180 && Math.abs(y - spot.y) < 70))
    spot = { ...spot, x: spot.x + 60 };
  return spot;
}
