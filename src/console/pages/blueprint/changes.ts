/** Compares two versions of a blueprint: added, removed and changed nodes and edges, field by field. */
import { fieldDiff } from '../../record/field-diff.js';
import type { Draft } from './draft.js';

export interface FieldChange {
  readonly field: string;
  /** Or `undefined` if the field was missing. */
  readonly before: unknown;
  readonly after: unknown;
}

export interface PartChange {
  readonly kind: 'blueprint' | 'node' | 'edge';
  readonly name: string;
  readonly how: 'added' | 'removed' | 'changed';
  /** All fields of an added or removed part. */
  readonly fields: readonly FieldChange[];
}

/** Changes of the blueprint's own fields, then of nodes, then of edges. Empty if both are equal. */
export function changesBetween(before: Draft, after: Draft): readonly PartChange[] {
  const parts = new Map<string, PartChange>();
  const add = (kind: PartChange['kind'], name: string, change: Omit<PartChange, 'kind' | 'name'>): void => {
    const key = JSON.stringify([kind, name]);
    parts.set(key, { kind, name, how: change.how, fields: [...(parts.get(key)?.fields ?? []), ...change.fields] });
  };
  for (const { path, before: old, after: now } of fieldDiff(comparable(before), comparable(after))) {
    const [list, id, ...inner] = path;
    const kind = list === 'nodes' ? 'node' : list === 'edges' ? 'edge' : 'blueprint';
    if (kind === 'blueprint' || id === undefined) {
      add('blueprint', after.name, { how: 'changed', fields: [{ field: path.join('.'), before: old, after: now }] });
    } else if (inner.length > 0) {
      add(kind, String(id), { how: 'changed', fields: [{ field: inner.join('.'), before: old, after: now }] });
    } else {
      const isAdded = old === undefined;
      const fields = fieldsOf(isAdded ? now : old).map(([field, value]) =>
        isAdded ? { field, before: undefined, after: value } : { field, before: value, after: undefined },
      );
      add(kind, String(id), { how: isAdded ? 'added' : 'removed', fields });
    }
  }
  for (const list of ['nodes', 'edges'] as const) {
    const field = orderChange(list, comparable(before)[list], comparable(after)[list]);
    if (field !== null) add('blueprint', after.name, { how: 'changed', fields: [field] });
  }
  return [...parts.values()].sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind));
}

const KINDS: readonly PartChange['kind'][] = ['blueprint', 'node', 'edge'];

/** Gives edges without an id one from their ends; a missing optional field equals an empty one. */
function comparable({
  name,
  nodes,
  edges,
  approvals = {},
  budget = {},
  fallbacks = [],
  entry = '',
  god_mode = 'optional',
  model_options = {},
  documents = [],
  output_schema = {},
}: Draft) {
  return {
    name,
    approvals,
    budget,
    fallbacks,
    entry,
    god_mode,
    model_options,
    documents,
    output_schema,
    nodes,
    edges: edges.map((edge) => ({ ...edge, id: edge.id ?? `${edge.source}->${edge.target}` })),
  };
}

function fieldsOf(part: unknown): readonly (readonly [string, unknown])[] {
  return typeof part === 'object' && part !== null ? Object.entries(part) : [];
}

/** A change of order, which decides the first node and the first condition, or null. */
function orderChange(
  list: string,
  before: readonly { readonly id: string }[],
  after: readonly { readonly id: string }[],
): FieldChange | null {
  const [old, now] = [before.map(({ id }) => id), after.map(({ id }) => id)];
  const [was, is] = [old.filter((id) => now.includes(id)).join(', '), now.filter((id) => old.includes(id)).join(', ')];
  return was === is ? null : { field: `order of ${list}`, before: was, after: is };
}
