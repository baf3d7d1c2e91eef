/** A blueprint in the editor: plain values, and edits that keep unknown fields. */
import type {
  Approvals,
  Blueprint,
  BlueprintCreate,
  BlueprintEdge,
  BlueprintNode,
  BlueprintUpdate,
  Budget,
  CouncilGodMode,
  ModelOptions,
  NodeRole,
} from '../../../generated/schemas.js';
import { entryIn } from '../../record/drawn-graph.js';

export interface Draft {
  readonly name: string;
  readonly nodes: readonly BlueprintNode[];
  readonly edges: readonly BlueprintEdge[];
  readonly approvals?: Approvals | undefined;
  readonly budget?: Budget | undefined;
  /** Models that nodes without their own fallbacks ask instead. */
  readonly fallbacks?: string[] | undefined;
  /** Id of the node where a run begins, if the user has set it. */
  readonly entry?: string | undefined;
  /** Whether every run is in God Mode. */
  readonly god_mode?: CouncilGodMode | undefined;
  /** How programs run it as a model. */
  readonly model_options?: ModelOptions | undefined;
  /** Ids of the documents that the PDF reader searches; absent: all. */
  readonly documents?: string[] | undefined;
  /** JSON Schema of the final output. */
  readonly output_schema?: BlueprintCreate['output_schema'];
}

type Options = Pick<
  BlueprintCreate,
  'approvals' | 'budget' | 'fallbacks' | 'entry' | 'god_mode' | 'model_options' | 'documents' | 'output_schema'
>;

/** The optional fields of a blueprint that a draft has. */
function optionsOf({
  approvals,
  budget,
  fallbacks,
  entry,
  god_mode,
  model_options,
  documents,
  output_schema,
}: Pick<Draft, keyof Options>): Options {
  return {
    ...(approvals !== undefined && { approvals }),
    ...(budget !== undefined && { budget }),
    ...(fallbacks !== undefined && { fallbacks }),
    ...(entry !== undefined && { entry }),
    ...(god_mode !== undefined && { god_mode }),
    ...(model_options !== undefined && { model_options }),
    ...(documents !== undefined && { documents }),
    ...(output_schema !== undefined && { output_schema }),
  };
}

/** The optional fields of a JSON object; those of the wrong kind are left out. */
export function optionsIn({
  approvals,
  budget,
  fallbacks,
  entry,
  god_mode,
  model_options,
  documents,
  output_schema,
}: Readonly<Record<string, unknown>>): Options {
  return {
    ...(isRecord(approvals) && { approvals }),
    ...(isRecord(budget) && { budget }),
    ...(typeof entry === 'string' && { entry }),
    ...((god_mode === 'always' || god_mode === 'optional') && { god_mode }),
    ...(isRecord(model_options) && { model_options }),
    ...(Array.isArray(fallbacks) && { fallbacks: fallbacks.map(String) }),
    ...(Array.isArray(documents) && { documents: documents.map(String) }),
    ...(isRecord(output_schema) && { output_schema }),
  };
}

/** A node or an edge by its index: ids may be equal while the user types. */
export interface NodeOrEdge {
  readonly kind: 'node' | 'edge';
  readonly at: number;
}

const NODE_ROLES: Readonly<Record<NodeRole, true>> = {
  agent: true,
  critic: true,
  panel: true,
  rank: true,
  judge: true,
  format: true,
  council: true,
};

export function isRole(text: string): text is NodeRole {
  return Object.hasOwn(NODE_ROLES, text);
}

export interface Position {
  readonly x: number;
  readonly y: number;
}

/** The content of a new blueprint. */
export const EMPTY: Draft = { name: 'New council', nodes: [], edges: [] };

/** The editable fields of a saved blueprint. */
export function draftOf({ name, nodes, edges, ...more }: Blueprint | Draft): Draft {
  return { name, nodes, edges, ...optionsOf(more) };
}

/** The request body for a draft. */
export function bodyOf({ name, nodes, edges, ...more }: Draft): BlueprintCreate {
  return { name, nodes: [...nodes], edges: [...edges], ...optionsOf(more) };
}

/** The update of a saved blueprint to a draft: null removes an optional field, because the service keeps a missing one. */
export function updateOf(draft: Draft, saved: Pick<Blueprint, keyof Options>): BlueprintUpdate {
  const had = optionsOf(saved);
  return {
    ...(had.approvals !== undefined && { approvals: null }),
    ...(had.budget !== undefined && { budget: null }),
    ...(had.fallbacks !== undefined && { fallbacks: null }),
    ...(had.entry !== undefined && { entry: null }),
    ...(had.god_mode !== undefined && { god_mode: null }),
    ...(had.model_options !== undefined && { model_options: null }),
    ...(had.documents !== undefined && { documents: null }),
    ...(had.output_schema !== undefined && { output_schema: null }),
    ...bodyOf(draft),
  };
}

/** Whether a draft has an approval rule, of the council or of a member. */
export function hasRules({ approvals, nodes }: Draft): boolean {
  return approvals !== undefined || nodes.some((node) => node.approvals !== undefined);
}

/**
 * A draft after its approval rules were edited. The first rule proposes God Mode for every run, because a run without it asks no
 * approver; a choice that the draft already holds stays.
 */
export function withProposedGodMode(before: Draft, after: Draft): Draft {
  const isProposed = hasRules(after) && !hasRules(before) && after.god_mode === undefined;
  return isProposed ? { ...after, god_mode: 'always' } : after;
}

/** Fields to change; `undefined` removes a field. */
export type Change<T> = { readonly [K in keyof T]?: T[K] | undefined };

export function changed<T extends object>(record: T, change: Change<T>): T {
  const next = { ...record, ...change };
  for (const [name, value] of Object.entries(change)) if (value === undefined) Reflect.deleteProperty(next, name);
  return next;
}

/** Id of the node where a run begins, or null without nodes. */
export function entryOf({ nodes, edges, entry }: Pick<Draft, 'nodes' | 'edges' | 'entry'>): string | null {
  return (
    entryIn(
      nodes.map(({ id }) => id),
      edges,
      entry,
    ) ?? null
  );
}

/** Adds a node; the entry stays where it is. @param spot its position, or null to lay it out */
export function withNode(draft: Draft, spot: Position | null): Draft {
  const ids = new Set(draft.nodes.map(({ id }) => id));
  let count = draft.nodes.length + 1;
  while (ids.has(`agent-${count}`)) count += 1;
  const node = { id: `agent-${count}`, label: `Member ${count}`, systemPrompt: '' };
  const nodes = [...draft.nodes, spot === null ? node : { ...node, position: spot }];
  const [before, after] = [entryOf(draft), entryOf({ ...draft, nodes })];
  return { ...draft, nodes, ...(before !== null && before !== after && { entry: before }) };
}

/** Removes a node and its edges. */
export function withoutNode(draft: Draft, at: number): Draft {
  const id = draft.nodes[at]?.id;
  const nodes = draft.nodes.filter((_, index) => index !== at);
  const isStillThere = nodes.some((node) => node.id === id);
  const edges = draft.edges.filter(({ source, target }) => isStillThere || (source !== id && target !== id));
  return changed({ ...draft, nodes, edges }, draft.entry === id && !isStillThere ? { entry: undefined } : {});
}

export function withNodeChanged(draft: Draft, at: number, change: Change<BlueprintNode>): Draft {
  return { ...draft, nodes: draft.nodes.map((node, index) => (index === at ? changed(node, change) : node)) };
}

/** Why a node cannot have an id, or null if it can. */
export function idFault(draft: Draft, at: number, id: string): string | null {
  if (id === '' || id === 'done') return 'Enter another id.';
  return draft.nodes.some((node, index) => index !== at && node.id === id) ? `Another node has the id “${id}”.` : null;
}

/** Renames a node in its edges too, and in edge ids that consist of both ends. */
export function withNodeRenamed(draft: Draft, at: number, id: string): Draft {
  const old = draft.nodes[at]?.id;
  const renamed = (end: string): string => (end === old ? id : end);
  const edges = draft.edges.map((edge) => {
    if (edge.source !== old && edge.target !== old) return edge;
    const ends = { source: renamed(edge.source), target: renamed(edge.target) };
    const isNamedByEnds = edge.id === `${edge.source}->${edge.target}`;
    return { ...edge, ...ends, ...(isNamedByEnds && { id: `${ends.source}->${ends.target}` }) };
  });
  return {
    ...withNodeChanged(draft, at, { id }),
    edges,
    ...(old !== undefined && draft.entry === old && { entry: id }),
  };
}

/** @param spots positions by index of the node */
export function withPositions(draft: Draft, spots: ReadonlyMap<number, Position>): Draft {
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

/** Whether the user has set a node's position: the service gives all others 0, 0. */
export function isPlaced({ position }: BlueprintNode, others: readonly BlueprintNode[]): boolean {
  const { x, y } = position ?? {};
  if (x === undefined || y === undefined) return false;
  if (x !== 0 || y !== 0) return true;
  return others.filter((other) => other.position?.x === 0 && other.position.y === 0).length === 1 && others.length > 1;
}

/** A draft as indented JSON. */
export function jsonOf(draft: Draft): string {
  return JSON.stringify(draftOf(draft), null, 2);
}

/** @throws {SyntaxError} or {TypeError} that names the field and what it must be */
export function parseDraft(text: string): Draft {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value)) throw new TypeError('The JSON must be an object with name, nodes and edges');
  const { name, nodes, edges = [] } = value;
  if (typeof name !== 'string') throw new TypeError('name must be a text');
  return {
    name,
    nodes: recordsOf(nodes, 'nodes', isNode, 'an object with an id'),
    edges: recordsOf(edges, 'edges', isEdge, 'an object with source and target'),
    ...optionsIn(value),
  };
}

function recordsOf<T>(list: unknown, path: string, isOne: (value: unknown) => value is T, wanted: string): T[] {
  if (!Array.isArray(list)) throw new TypeError(`${path} must be a list`);
  return list.map((value: unknown, at) => {
    if (!isOne(value)) throw new TypeError(`${path}[${at}] must be ${wanted}`);
    return value;
  });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The service checks the other fields. */
function isNode(value: unknown): value is BlueprintNode {
  return isRecord(value) && typeof value.id === 'string';
}

function isEdge(value: unknown): value is BlueprintEdge {
  return isRecord(value) && typeof value.source === 'string' && typeof value.target === 'string';
}
