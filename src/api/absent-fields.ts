/** Removes the fields of request bodies that count as absent, so that clients may send null or the default for them. */
import { isRecord } from '../system/untrusted.js';
import type { JsonSchema, SchemaName, SchemaRegistry } from './schemas.js';

/** The fields that a record's schema names, with those of nested records. */
interface Fields {
  readonly named: ReadonlyMap<string, Fields>;
  /** The fields of the records in a list. */
  readonly items: Fields | null;
}

const NO_FIELDS: Fields = { named: new Map(), items: null };

/** The field in which null is a value: the changes of a human to the state of a run. */
const STATE_FIELD = 'modified_state';

/**
 * A function that removes a body's null fields: all of the body itself, and in nested records those that the schema
 * names. Unknown fields of nodes and edges keep their nulls.
 */
export function nullsLeftOut(schemas: SchemaRegistry, schema: SchemaName): (body: unknown) => unknown {
  const fields = fieldsOf({ schemas, file: schema }, schemas.document(schema));
  return (body) => (isRecord(body) ? withoutNulls(without(body, isNull), fields) : body);
}

/** A body without the fields that hold their default. */
export function defaultsLeftOut(body: unknown, { properties = {} }: JsonSchema): unknown {
  if (!isRecord(body)) return body;
  const isDefault = (value: unknown, name: string): boolean =>
    Object.hasOwn(properties, name) && properties[name]?.default !== undefined && properties[name].default === value;
  return without(body, isDefault);
}

function withoutNulls(value: unknown, { named, items }: Fields): unknown {
  if (Array.isArray(value)) return items === null ? value : value.map((each) => withoutNulls(each, items));
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([name, member]) => member !== null || !named.has(name));
  // Not assigned one by one, because an assignment to `__proto__` would not create a field.
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutNulls(member, named.get(name) ?? NO_FIELDS)]));
}

function without(
  record: Readonly<Record<string, unknown>>,
  isLeftOut: (value: unknown, name: string) => boolean,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(record).filter(([name, value]) => !isLeftOut(value, name)));
}

interface SchemaLocation {
  readonly schemas: SchemaRegistry;
  /** The schema file that local references start from. */
  readonly file: string;
}

/** Schemas of request bodies refer to others, but never in a cycle. */
function fieldsOf(location: SchemaLocation, schema: JsonSchema): Fields {
  const { $ref: ref, properties = {}, items } = schema;
  if (typeof ref === 'string') return fieldsAt(location, ref);
  const named = Object.entries(properties).map(([name, field]): readonly [string, Fields] => [
    name,
    name === STATE_FIELD ? NO_FIELDS : fieldsOf(location, field),
  ]);
  return { named: new Map(named), items: isRecord(items) ? fieldsOf(location, items) : null };
}

function fieldsAt({ schemas, file }: SchemaLocation, ref: string): Fields {
  const [name = '', pointer = ''] = ref.split('#');
  const target = name === '' ? file : name;
  let found: unknown = schemas.document(target);
  for (const part of pointer.split('/').slice(1)) found = isRecord(found) ? found[part] : undefined;
  if (!isRecord(found)) throw new Error(`Cannot find "${ref}", which ${file} refers to`);
  return fieldsOf({ schemas, file: target }, found);
}

function isNull(value: unknown): boolean {
  return value === null;
}
