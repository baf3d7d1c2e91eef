/** A blueprint while it is edited: plain values, and edits that leave alone whatever they do not name. */
import type {
  Approvals,
  Blueprint,
  BlueprintCreate,
  BlueprintEdge,
  BlueprintNode,
  NodeRole,
} from '../../../generated/schemas.js';

export interface Draft {
  readonly name: string;
  readonly nodes: readonly BlueprintNode[];
  readonly edges: readonly BlueprintEdge[];
  readonly approvals?: Approvals | undefined;
}

/** A node or an edge by its place in its list: while somebody types, ids need not differ. */
export interface Part {
  readonly kind: 'node' | 'edge';
  readonly at: number;
}

/** What a node of each role does, in the order in which they are offered. */
export const ROLES: Readonly<Record<NodeRole, string>> = {
  agent: 'Agent: writes the draft',
  critic: 'Critic: scores it and routes',
};

export function isRole(text: string): text is NodeRole {
  return Object.hasOwn(ROLES, text);
}

export interface Spot {
  readonly x: number;
  readonly y: number;
}

/** What a new blueprint begins with. */
export const EMPTY: Draft = { name: 'New blueprint', nodes: [], edges: [] };

/** A council that works, to go on from: a writer, and a critic who sends work back. */
export const STARTER: Draft = {
  name: 'Writer and critic',
  nodes: [
    {
      id: 'writer',
      label: 'Writer',
      systemPrompt: 'Write a clear, well-argued text on the topic. Take up all feedback.',
    },
    {
      id: 'critic',
      label: 'Critic',
      type: 'critic',
      systemPrompt: 'Judge the draft strictly: is it true, clear and complete?',
    },
    { id: 'editor', label: 'Editor', systemPrompt: 'Polish the draft and change nothing in what it says.' },
  ],
  edges: [
    { id: 'writer->critic', source: 'writer', target: 'critic' },
    { id: 'critic->writer', source: 'critic', target: 'writer', type: 'conditional', condition: 'rework' },
    { id: 'critic->editor', source: 'critic', target: 'editor', type: 'conditional', condition: 'approve' },
  ],
};

/** What of a saved blueprint is edited. */
export function draftOf({ name, nodes, edges, approvals }: Blueprint | Draft): Draft {
  return { name, nodes, edges, ...(approvals !== undefined && { approvals }) };
}

/** A draft as the service takes it. */
export function bodyOf({ name, nodes, edges, approvals }: Draft): BlueprintCreate {
  return { name, nodes: [...nodes], edges: [...edges], ...(approvals !== undefined && { approvals }) };
}

/** Fields to change; undefined takes one out. */
export type Change<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** A record with some fields changed. */
export function changed<T extends object>(record: T, change: Change<T>): T {
  const next = { ...record, ...change };
  for (const [name, value] of Object.entries(change)) if (value === undefined) Reflect.deleteProperty(next, name);
  return next;
}

/** @param spot absent: it is placed with the others */
export function withNode(draft: Draft, spot: Spot | null): Draft {
  const ids = new Set(draft.nodes.map(({ id }) => id));
  let count = draft.nodes.length + 1;
  while (ids.has(`agent-${count}`)) count += 1;
  const node = { id: `agent-${count}`, label: `Agent ${count}`, systemPrompt: '' };
  return { ...draft, nodes: [...draft.nodes, spot === null ? node : { ...node, position: spot }] };
}

/** Without a node, and the edges that have lost an end by that. */
export function withoutNode(draft: Draft, at: number): Draft {
  const id = draft.nodes[at]?.id;
  const nodes = draft.nodes.filter((_, index) => index !== at);
  const isStillThere = nodes.some((node) => node.id === id);
  const edges = draft.edges.filter(({ source, target }) => isStillThere || (source !== id && target !== id));
  return { ...draft, nodes, edges };
}

export function withNodeChanged(draft: Draft, at: number, change: Change<BlueprintNode>): Draft {
  return { ...draft, nodes: draft.nodes.map((node, index) => (index === at ? changed(node, change) : node)) };
}

/** Why a node may not have an id; null: it may. */
export function idFault(draft: Draft, at: number, id: string): string | null {
  if (id === '' || id === 'done') return 'A node needs another id.';
  return draft.nodes.some((node, index) => index !== at && node.id === id) ? `Another node is called “${id}”.` : null;
}

/** Edges follow the node; those that are called after their ends are called anew. */
export function withNodeRenamed(draft: Draft, at: number, id: string): Draft {
  const old = draft.nodes[at]?.id;
  const renamed = (end: string): string => (end === old ? id : end);
  const edges = draft.edges.map((edge) => {
    if (edge.source !== old && edge.target !== old) return edge;
    const ends = { source: renamed(edge.source), target: renamed(edge.target) };
    const isNamedByEnds = edge.id === `${edge.source}->${edge.target}`;
    return { ...edge, ...ends, ...(isNamedByEnds && { id: `${ends.source}->${ends.target}` }) };
  });
  return { ...withNodeChanged(draft, at, { id }), edges };
}

/** @param spots of nodes by their place in the list */
export function withSpots(draft: Draft, spots: ReadonlyMap<number, Spot>): Draft {
  return {
    ...draft,
    nodes: draft.nodes.map((node, at) => {
      const spot = spots.get(at);
      if (spot === undefined) return node;
      return { ...node, position: { ...node.position, x: Math.round(spot.x), y: Math.round(spot.y) } };
    }),
  };
}

export function withEdge(
  draft: Draft,
  { source, target }: { readonly source: string; readonly target: string },
): Draft {
  const ids = new Set(draft.edges.map((edge) => edge.id));
  const ends = `${source}->${target}`;
  let id = ends;
  for (let count = 2; ids.has(id); count += 1) id = `${ends} ${count}`;
  return { ...draft, edges: [...draft.edges, { id, source, target, type: 'linear', condition: null }] };
}

export function withoutEdge(draft: Draft, at: number): Draft {
  return { ...draft, edges: draft.edges.filter((_, index) => index !== at) };
}

export function withEdgeChanged(draft: Draft, at: number, change: Change<BlueprintEdge>): Draft {
  return { ...draft, edges: draft.edges.map((edge, index) => (index === at ? changed(edge, change) : edge)) };
}

/** Whether anybody has said where a node stands: the service gives all others the place 0, 0. */
export function isPlaced({ position }: BlueprintNode, others: readonly BlueprintNode[]): boolean {
  const { x, y } = position ?? {};
  if (x === undefined || y === undefined) return false;
  if (x !== 0 || y !== 0) return true;
  return others.filter((other) => other.position?.x === 0 && other.position.y === 0).length === 1 && others.length > 1;
}

/** A draft as JSON that people read. */
export function jsonOf(draft: Draft): string {
  return JSON.stringify(draftOf(draft), null, 2);
}

/** @throws {SyntaxError} and {TypeError}, saying what is wanted where */
export function parseDraft(text: string): Draft {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value)) throw new TypeError('An object with name, nodes and edges is wanted');
  const { name, nodes, edges = [], approvals } = value;
  if (typeof name !== 'string') throw new TypeError('name: a text is wanted');
  return {
    name,
    nodes: recordsOf(nodes, 'nodes', isNode, 'an object with an id'),
    edges: recordsOf(edges, 'edges', isEdge, 'an object with source and target'),
    ...(isRecord(approvals) && { approvals }),
  };
}

function recordsOf<T>(list: unknown, path: string, isOne: (value: unknown) => value is T, wanted: string): T[] {
  if (!Array.isArray(list)) throw new TypeError(`${path}: a list is wanted`);
  return list.map((value: unknown, at) => {
    if (!isOne(value)) throw new TypeError(`${path}[${at}]: ${wanted} is wanted`);
    return value;
  });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Its other fields are checked by the service, which tells where they are wrong. */
function isNode(value: unknown): value is BlueprintNode {
  return isRecord(value) && typeof value.id === 'string';
}

function isEdge(value: unknown): value is BlueprintEdge {
  return isRecord(value) && typeof value.source === 'string' && typeof value.target === 'string';
}
