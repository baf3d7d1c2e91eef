/** A blueprint's record: what is sent becomes what is kept, defaults filled in (contract, "Blueprint record and CRUD"). */
import type { Blueprint, BlueprintCreate, BlueprintUpdate, SavedEdge, SavedNode } from '../generated/schemas.js';
import { rolesOf } from './critics.js';
import { inspect, warningsOf } from './inspect.js';

/** Ids that stand for other things in the paths of the API, and those that clients resolve away. */
const RESERVED_IDS: ReadonlySet<string> = new Set(['run', 'runs', 'upload-pdf', 'validate', '.', '..']);

/** What makes up a council, in a record or before it is one. */
export type Council = Pick<Blueprint, 'name' | 'nodes' | 'edges'>;

/** Whether an id has the form of a blueprint's: 1 to 128 letters, digits, `-`, `_`, `.`, and none that is reserved. */
export function isBlueprintId(text: string): boolean {
  return /^[A-Za-z0-9._-]{1,128}$/.test(text) && !RESERVED_IDS.has(text);
}

/** The record of a new blueprint. */
export function createdBlueprint(
  draft: BlueprintCreate,
  { id, at }: { readonly id: string; readonly at: string },
): Blueprint {
  return recordOf(councilOf(draft), { id, version: 1, createdAt: at, updatedAt: at });
}

/** The record after an update: fields that it does not name stay as they are. */
export function updatedBlueprint(current: Blueprint, change: BlueprintUpdate, at: string): Blueprint {
  const { id, version, createdAt } = current;
  const { name = current.name, nodes = current.nodes, edges = current.edges } = change;
  return recordOf(councilOf({ name, nodes, edges }), { id, version: version + 1, createdAt, updatedAt: at });
}

/** What is sent as a council, defaults filled in. */
export function councilOf({ name, nodes, edges = [] }: BlueprintCreate): Council {
  return { name, nodes: nodes.map(savedNode), edges: edges.map(savedEdge) };
}

/** Place in the list of the first node whose id an earlier one has, -1 when ids are unique. */
export function repeatedNode(nodes: readonly { readonly id: string }[]): number {
  const seen = new Set<string>();
  return nodes.findIndex(({ id }) => seen.size === seen.add(id).size);
}

/** What an edge is called that was given no id. */
export function defaultEdgeId({ source, target }: Pick<SavedEdge, 'source' | 'target'>): string {
  return `${source}->${target}`;
}

function recordOf(council: Council, rest: Pick<Blueprint, 'id' | 'version' | 'createdAt' | 'updatedAt'>): Blueprint {
  return { ...rest, ...council, warnings: warningsOf(inspect(council)), roles: rolesOf(council) };
}

function savedNode(node: BlueprintCreate['nodes'][number]): SavedNode {
  return {
    ...node,
    label: node.label ?? node.id,
    systemPrompt: node.systemPrompt ?? '',
    tools: { ...node.tools, webSearch: node.tools?.webSearch ?? false, pdfReader: node.tools?.pdfReader ?? false },
    position: { ...node.position, x: node.position?.x ?? 0, y: node.position?.y ?? 0 },
  };
}

function savedEdge(edge: NonNullable<BlueprintCreate['edges']>[number]): SavedEdge {
  return {
    ...edge,
    id: edge.id ?? defaultEdgeId(edge),
    type: edge.type ?? 'linear',
    condition: edge.condition ?? null,
  };
}
