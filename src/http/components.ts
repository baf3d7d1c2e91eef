/**
 * The schemas of the folder schemas/ as components of an OpenAPI or AsyncAPI document. A schema with a title becomes a
 * component of that name and others refer to it; a schema without a title is copied to where it is used. So no reference
 * points into the middle of a schema, which code generators do not follow.
 */
import type { DataByType, JsonSchema, SchemaRegistry } from '../api/schemas.js';
import { isRecord } from '../system/untrusted.js';

/** A JSON object of a document. */
export type Json = Readonly<Record<string, unknown>>;

/** Creates a union's discriminator; `mapping` maps the property's values to the members' components. */
export type Discriminator = (property: string, mapping: Json) => unknown;

/** Keywords that hold schemas by name. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas']);
/** Keywords that hold a schema, or a list of them. */
const SCHEMAS: ReadonlySet<string> = new Set([
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'items', 'prefixItems', 'contains'],
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames'],
]);
/** Keywords to remove: an `$id` within the document would change the meaning of its references. */
const LEFT_OUT: ReadonlySet<string> = new Set(['$id', '$schema', '$defs']);

/** Collects the components of one document. */
export class Components {
  readonly #schemas: SchemaRegistry;
  readonly #discriminator: Discriminator;
  readonly #found = new Map<string, { readonly schema: JsonSchema; component: Json }>();
  /** Fields with their default in the description, by the field in its file. */
  readonly #described = new Map<JsonSchema, JsonSchema>();

  constructor(schemas: SchemaRegistry, discriminator: Discriminator) {
    this.#schemas = schemas;
    this.#discriminator = discriminator;
  }

  /** The schema of a file, as the document shows it. */
  schemaOf(file: string): Json {
    return this.place(this.#schemas.document(file), file);
  }

  /** A schema within a file, as the document shows it. */
  place(schema: JsonSchema, file: string): Json {
    const { $ref, ...beside } = schema;
    if (typeof $ref === 'string') return { ...this.#referredTo($ref, file), ...this.#membersOf(beside, file) };
    if (schema.title === undefined) return this.#membersOf(schema, file);
    this.#addComponent(schema.title, schema, file);
    return { $ref: pointerTo(schema.title) };
  }

  /** The components so far, by name. */
  all(): Json {
    return Object.fromEntries([...this.#found].map(([title, { component }]) => [title, component]));
  }

  #referredTo(ref: string, from: string): Json {
    const [name = '', pointer = ''] = ref.split('#');
    const file = name === '' ? from : name;
    return this.place(this.#withDescribedDefault(schemaAt(this.#schemas.document(file), pointer)), file);
  }

  /** The field as the document shows it: the same object each time, so that one title names one schema. */
  #withDescribedDefault(field: JsonSchema): JsonSchema {
    const described = this.#described.get(field) ?? describedDefault(field);
    this.#described.set(field, described);
    return described;
  }

  #addComponent(title: string, schema: JsonSchema, file: string): void {
    const known = this.#found.get(title);
    if (known === undefined) {
      // Added before it is complete, because a schema may refer to itself.
      const entry: { readonly schema: JsonSchema; component: Json } = { schema, component: {} };
      this.#found.set(title, entry);
      entry.component = this.#membersOf(schema, file);
    } else if (known.schema !== schema) {
      throw new Error(`Cannot describe the service: two schemas have the title "${title}"`);
    }
  }

  #membersOf(schema: JsonSchema, file: string): Json {
    const { 'x-data-by-type': byType } = schema;
    if (byType !== undefined) {
      const types = Object.keys(this.#schemas.document(byType.facts).properties ?? {});
      return this.#membersOf(unionByType(schema, { ...byType, types, discriminator: this.#discriminator }), file);
    }
    const members = Object.entries(schema).flatMap(([keyword, value]): [string, unknown][] => {
      if (LEFT_OUT.has(keyword)) return [];
      if (SCHEMAS.has(keyword)) return [[keyword, this.#placeAll(value, file)]];
      if (!NAMED_SCHEMAS.has(keyword) || !isRecord(value)) return [[keyword, value]];
      const named = Object.entries(value).map(([name, each]) => [
        name,
        isRecord(each) ? this.place(this.#withDescribedDefault(each), file) : each,
      ]);
      return [[keyword, Object.fromEntries(named)]];
    });
    return { ...impliedKeywords(schema), ...Object.fromEntries(members) };
  }

  /** A keyword's schema or list of schemas. */
  #placeAll(value: unknown, file: string): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#placeAll(each, file));
    return isRecord(value) ? this.place(value, file) : value;
  }
}

interface Union extends DataByType {
  readonly types: readonly string[];
  readonly discriminator: Discriminator;
}

/** Replaces a record whose `data` has one of many types by a union of records, one for each type. */
function unionByType(schema: JsonSchema, { facts, suffix, types, discriminator }: Union): JsonSchema {
  const { title = '', description, type, additionalProperties, required, properties } = schema;
  const oneOf = types.map((each) => {
    const byType = { type: { const: each }, data: { $ref: `${facts}#/properties/${each}` } };
    return { title: each + suffix, type, additionalProperties, required, properties: { ...properties, ...byType } };
  });
  const mapping = Object.fromEntries(types.map((each) => [each, pointerTo(each + suffix)]));
  return { title, description, oneOf, discriminator: discriminator('type', mapping) };
}

function pointerTo(title: string): string {
  return `#/components/schemas/${title}`;
}

/** The part of a schema at a JSON Pointer (RFC 6901). */
function schemaAt(schema: JsonSchema, pointer: string): JsonSchema {
  const names = pointer.split('/').slice(1);
  const found = names.reduce<unknown>(
    (part, name) => (isRecord(part) ? part[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
    schema,
  );
  if (isRecord(found)) return found;
  throw new Error(`Cannot find "${pointer}" in the schema "${schema.title ?? ''}"`);
}

/** Keywords that JSON Schema implies but code generators need explicitly. */
function impliedKeywords(schema: JsonSchema): Json {
  const { type, const: constant, enum: values = constant === undefined ? undefined : [constant] } = schema;
  if (type === undefined && Array.isArray(values)) {
    const types = [...new Set(values.map(typeOf))];
    return { type: types.length === 1 ? types[0] : types };
  }
  const isOpen = !['properties', 'additionalProperties', 'unevaluatedProperties'].some((each) => each in schema);
  return type === 'object' && isOpen ? { additionalProperties: true } : {};
}

/** Moves a default into the description, because generators treat a field with a default as required. */
function describedDefault(field: JsonSchema): JsonSchema {
  if (field.default === undefined) return field;
  const { default: value, description = '', ...rest } = field;
  return { ...rest, description: `${String(description)} Default: ${JSON.stringify(value)}.`.trimStart() };
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
