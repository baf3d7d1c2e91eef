/** The schemas of the folder schemas/ as clients of MCP need them: each complete in itself. */
import type { JsonSchema, SchemaName, SchemaRegistry } from '../api/schemas.js';
import { isRecord } from '../system/untrusted.js';
import type { Schema } from './tool.js';

/** Keywords without a meaning for clients; an `$id` would change the meaning of references. */
const LEFT_OUT: ReadonlySet<string> = new Set(['$id', '$schema', '$defs', 'title', 'examples']);

/** The schema of a file that describes an object, with a copy in place of each reference. It must not refer to itself. */
export function inlinedSchema(schemas: SchemaRegistry, file: SchemaName): Schema {
  return { ...membersOf(schemas.document(file), { schemas, file }), type: 'object' };
}

/** The schema of a file, with more properties. */
export function inlinedWith(schemas: SchemaRegistry, file: SchemaName, more: Readonly<Record<string, object>>): Schema {
  const { properties, ...members } = inlinedSchema(schemas, file);
  return { ...members, properties: { ...(isRecord(properties) && properties), ...more } };
}

/** The schema of `{[name]: …}`, where the value has the schema of a file. */
export function inlinedIn(schemas: SchemaRegistry, name: string, file: SchemaName): Schema {
  const value = membersOf(schemas.document(file), { schemas, file });
  return { type: 'object', additionalProperties: false, required: [name], properties: { [name]: value } };
}

interface SchemaFile {
  readonly schemas: SchemaRegistry;
  /** The file in which local references point. */
  readonly file: string;
}

function membersOf(schema: JsonSchema, place: SchemaFile): JsonSchema {
  const { $ref: ref, ...beside } = schema;
  const members = Object.entries(beside).flatMap(([keyword, value]): [string, unknown][] => {
    if (LEFT_OUT.has(keyword)) return [];
    if (keyword !== 'properties' || !isRecord(value)) return [[keyword, valueOf(value, place)]];
    const named = Object.entries(value).map(([name, each]) => [name, valueOf(each, place)]);
    return [[keyword, Object.fromEntries(named)]];
  });
  const inlined = { ...(typeof ref === 'string' && referredTo(ref, place)), ...Object.fromEntries(members) };
  // OpenAI's API refuses all tools of a request if an object in one of them names no properties.
  return inlined['type'] === 'object' ? { properties: {}, ...inlined } : inlined;
}

function valueOf(value: unknown, place: SchemaFile): unknown {
  if (Array.isArray(value)) return value.map((each) => valueOf(each, place));
  return isRecord(value) ? membersOf(value, place) : value;
}

function referredTo(ref: string, { schemas, file }: SchemaFile): JsonSchema {
  const [name = '', pointer = ''] = ref.split('#');
  const target = name === '' ? file : name;
  const names = pointer.split('/').slice(1);
  const found = names.reduce<unknown>(
    (part, each) => (isRecord(part) ? part[each] : undefined),
    schemas.document(target),
  );
  if (!isRecord(found)) throw new Error(`Cannot find "${ref}", which ${file} refers to`);
  return membersOf(found, { schemas, file: target });
}
