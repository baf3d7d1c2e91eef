/** A blueprint's record: a client's request with defaults. */
import type {
  Blueprint,
  BlueprintCreate,
  BlueprintRecord,
  BlueprintUpdate,
  SavedEdge,
  SavedNode,
} from '../generated/schemas.js';
import { jsonBytes } from '../graph/limits.js';
import { labelInOneLine } from '../graph/label.js';
import { rolesOf } from '../council/roles.js';
import { approvalIssues } from './approvals.js';
import type { InnerWarnings } from './councils.js';
import { firstNodeIssues, innerIssues } from './councils.js';
import { memberIssues, savedMembers } from './members.js';
import { misspeltFields } from './misspelt-fields.js';
import type { KnownModels } from './models.js';
import { modelIssues } from './models.js';
import type { GraphIssue } from './validate.js';
import { inspectGraph, warningsOf } from './validate.js';
import { waysOut } from './ways-out.js';

/** Ids that have another meaning in the API's paths, and `.` and `..`, which clients resolve as parts of a path. */
const RESERVED_IDS: ReadonlySet<string> = new Set(['run', 'runs', 'upload-pdf', 'validate', '.', '..']);

/** The client's part of a blueprint. */
type Council = Pick<Blueprint, 'name' | 'nodes' | 'edges' | keyof Optional>;

/** Whether a text is a blueprint id: 1 to 128 letters, digits, `-`, `_`, `.`, and not reserved. */
export function isBlueprintId(text: string): boolean {
  return /^[A-Za-z0-9._-]{1,128}$/.test(text) && !RESERVED_IDS.has(text);
}

/** The circumstances of a save. */
export interface Saving {
  readonly at: string;
  /** Whether the service has keys, whose names identify approvers. */
  readonly hasKeys: boolean;
  readonly models: KnownModels;
  /** The warnings of the saved councils that its nodes run, by id. Default: none. */
  readonly inner?: InnerWarnings;
}

/** The record of a new blueprint. */
export function createdBlueprint(
  draft: BlueprintCreate,
  { id, ...saving }: Saving & { readonly id: string },
): Blueprint {
  return recordOf(councilOf(draft), { id, version: 1, createdAt: saving.at }, saving);
}

/** The record after an update. Fields that are absent from it do not change; null removes an optional one. */
export function updatedBlueprint(current: Blueprint, change: BlueprintUpdate, saving: Saving): Blueprint {
  const { id, version, createdAt } = current;
  const { name = current.name, nodes = current.nodes, edges = current.edges } = change;
  const { fallbacks = current.fallbacks, approvals = current.approvals, budget = current.budget } = change;
  const { entry = current.entry, god_mode = current.god_mode, model_options = current.model_options } = change;
  const optional = given({
    fallbacks,
    approvals,
    budget,
    entry,
    god_mode,
    model_options,
    ...updatedRules(current, change),
  });
  const council = councilOf({ name, nodes, edges, ...optional });
  return recordOf(council, { id, version: version + 1, createdAt }, saving);
}

/** What holds for all runs of a council, after an update. */
function updatedRules(current: Blueprint, change: BlueprintUpdate) {
  const { documents = current.documents, output_schema = current.output_schema } = change;
  const { retentionDays = current.retentionDays } = change;
  return { documents, output_schema, retentionDays };
}

/** A client's council with defaults. */
export function councilOf({ name, nodes, edges = [], ...optional }: BlueprintCreate): Council {
  return { name, nodes: nodes.map(savedNode), edges: edges.map(savedEdge), ...given(optional) };
}

type Optional = Pick<
  Blueprint,
  | 'fallbacks'
  | 'approvals'
  | 'budget'
  | 'documents'
  | 'output_schema'
  | 'retentionDays'
  | 'entry'
  | 'god_mode'
  | 'model_options'
>;

/** The optional parts of a council that are neither undefined nor null, and nothing else. */
function given({
  fallbacks,
  approvals,
  budget,
  documents,
  output_schema,
  retentionDays,
  entry,
  god_mode,
  model_options: options,
}: { readonly [Name in keyof Optional]?: Optional[Name] | null | undefined }): Optional {
  return {
    ...(fallbacks && { fallbacks }),
    ...(approvals && { approvals }),
    ...(budget && { budget }),
    ...(documents && { documents }),
    ...(output_schema && { output_schema }),
    ...(retentionDays && { retentionDays }),
    ...(entry && { entry }),
    ...(god_mode && { god_mode }),
    ...(options && { model_options: options }),
  };
}

/** Index of the first node with the id of an earlier one, or -1. */
export function repeatedNode(nodes: readonly { readonly id: string }[]): number {
  const seen = new Set<string>();
  return nodes.findIndex(({ id }) => seen.size === seen.add(id).size);
}

/** The id of an edge without one. */
export function defaultEdgeId({ source, target }: Pick<SavedEdge, 'source' | 'target'>): string {
  return `${source}->${target}`;
}

function recordOf(
  council: Council,
  rest: Pick<Blueprint, 'id' | 'version' | 'createdAt'>,
  { at: updatedAt, ...known }: Saving,
): Blueprint {
  const warnings = warningsOf(councilIssues(council, known));
  return { ...rest, updatedAt, ...council, warnings, roles: rolesOf(council) };
}

/** All faults and warnings of a council. */
export function councilIssues(council: Council, { hasKeys, models, inner }: Omit<Saving, 'at'>): readonly GraphIssue[] {
  return [
    ...inspectGraph(council),
    ...memberIssues(council),
    ...misspeltFields(council),
    ...approvalIssues(council, hasKeys),
    ...waysOut(council),
    ...modelIssues(council, models),
    ...innerIssues(council, inner),
    ...firstNodeIssues(council),
  ];
}

function savedNode({ members, ...node }: BlueprintCreate['nodes'][number]): SavedNode {
  return {
    ...node,
    ...(members !== undefined && { members: savedMembers(members) }),
    label: node.label ?? labelInOneLine(node.id),
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

/**
 * Largest blueprint in bytes, as sent. Its defaults must fit into the same append: at most 155 KiB of labels, 60 KiB of
 * other fields, and the warnings.
 */
export const MAX_BLUEPRINT_BYTES = 256 * 1024;

/** Longest record, in bytes of its JSON text: its graph must fit into the append of a start, beside a material. */
const MAX_RECORD_BYTES = 500 * 1024;

/** Whether a record may exceed its append. */
export function isTooLong(record: BlueprintRecord): boolean {
  return jsonBytes(record) > MAX_RECORD_BYTES;
}

/**
 * Bytes of the shortest request for a council: default values do not count, except in members, whose default labels
 * might together exceed an append. So every request within the limit can be saved unless its members make it larger,
 * and several updates cannot make a larger blueprint than one request.
 */
export function sentBytes({ name, nodes, edges, ...optional }: Council): number {
  const plain = councilOf({
    name,
    nodes: nodes.map(({ id }) => ({ id })),
    edges: edges.map(({ source, target }) => ({ source, target })),
  });
  const sent = {
    name,
    nodes: nodes.map((node, at) => ({ id: node.id, ...nonDefaults(node, plain.nodes[at]) })),
    // An empty list is the default.
    edges: edges.length === 0 ? undefined : edges.map((edge, at) => sentEdge(edge, plain.edges[at])),
    ...given(optional),
  };
  return jsonBytes(sent);
}

function sentEdge(edge: Council['edges'][number], defaults: object | undefined): object {
  return { source: edge.source, target: edge.target, ...nonDefaults(edge, defaults) };
}

/** The fields without default values. */
function nonDefaults(value: object, defaults: object = {}): object {
  const fields = Object.entries(value).flatMap(([key, each]: [string, unknown]): (readonly [string, unknown])[] => {
    const plain: unknown = Object.hasOwn(defaults, key) ? Reflect.get(defaults, key) : undefined;
    if (each === plain) return [];
    if (!isObject(each) || !isObject(plain)) return [[key, each]];
    const rest = nonDefaults(each, plain);
    return Object.keys(rest).length === 0 ? [] : [[key, rest]];
  });
  return Object.fromEntries<unknown>(fields);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
