/**
 * Bodies of requests as JSON: accepts only what the service can store (UTF-8, well-formed text, finite numbers, bounded
 * nesting), and removes the fields that count as absent, so that clients may send null or the default for them.
 */
import type { FieldError } from '../generated/schemas.js';
import { isRecord } from '../system/untrusted.js';
import { brokenRules } from './problems.js';
import type { JsonSchema, SchemaName, SchemaRegistry } from './schemas.js';

/** Deepest nesting that the canonical form of a body can hold. */
const MAX_DEPTH = 512;

/**
 * The value of a JSON text.
 *
 * @param maxDepth deepest nesting, at most the default of 512
 * @throws {RequestRefused} 422 for bytes that are not UTF-8, text that is not JSON, nesting that is too deep,
 *   numbers past the range of doubles, strings and keys with an unpaired surrogate
 */
export function parseJson(bytes: Uint8Array, maxDepth = MAX_DEPTH): unknown {
  const value = parsed(decoded(bytes));
  const fault = faultIn(value, maxDepth);
  if (fault !== null) throw brokenRules([fault]);
  return value;
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw brokenRules([unreadable('Body should be UTF-8')]);
  }
}

function parsed(text: string): unknown {
  if (text.trim() === '') throw brokenRules([unreadable('Body should be JSON, but is empty')]);
  try {
    return JSON.parse(text);
  } catch {
    throw brokenRules([unreadable('Body should be JSON, but cannot be parsed')]);
  }
}

/** A list or record that is still to be checked. */
interface Container {
  readonly value: object;
  readonly depth: number;
  /** The field of the body that contains it, or null for the body itself. */
  readonly field: string | null;
}

/** Works without recursion, because the client chooses the depth of the value. */
function faultIn(root: unknown, maxDepth: number): FieldError | null {
  const open: Container[] = [];
  const check = (value: unknown, depth: number, field: string | null): FieldError | null => {
    if (typeof value === 'string' && !value.isWellFormed()) return unpaired(field);
    if (typeof value === 'number' && !Number.isFinite(value)) return unreadable('Number out of range', field);
    if (typeof value === 'object' && value !== null) {
      if (depth >= maxDepth) return unreadable(`Nesting should be at most ${maxDepth} deep`, field);
      open.push({ value, depth, field });
    }
    return null;
  };
  const fault = check(root, 0, null);
  if (fault !== null) return fault;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth, field } = next;
    for (const [key, member] of Object.entries(value)) {
      const found = key.isWellFormed() ? check(member, depth + 1, field ?? key) : unpaired(field);
      if (found !== null) return found;
    }
  }
  return null;
}

function unpaired(field: string | null): FieldError {
  return { loc: locOf(field), msg: 'Text should hold no unpaired surrogate', type: 'string_unicode' };
}

function unreadable(msg: string, field: string | null = null): FieldError {
  return { loc: locOf(field), msg, type: 'json_invalid' };
}

function locOf(field: string | null): string[] {
  return field === null ? ['body'] : ['body', field];
}

// Fields that count as absent.

/** What a schema says of a field of a body, and of the fields in it. */
interface Fields {
  readonly named: ReadonlyMap<string, Fields>;
  /** The fields of the records in a list. */
  readonly items: Fields | null;
  /** The value that counts as absent, or undefined if it has none. */
  readonly default: unknown;
  /** Whether null is a value of its own, which the schema lists beside another schema. */
  readonly isNullable: boolean;
}

const NO_FIELDS: Fields = { named: new Map(), items: null, default: undefined, isNullable: false };

/** The field in which null is a value: the changes of a human to the state of a run. */
const STATE_FIELD = 'modified_state';

/** Removes from a body what counts as absent. */
export type LeaveOut = (body: unknown) => unknown;

/** The functions that remove what counts as absent from the bodies of a schema. */
export interface AbsentFields {
  /**
   * Removes null fields: all of the body itself, and in nested records those that the schema names. Unknown fields of
   * nodes and edges keep their nulls, and so do fields for which null is a value.
   */
  readonly withoutNulls: LeaveOut;
  /** Removes the fields that hold their default, at any depth. */
  readonly withoutDefaults: LeaveOut;
}

export function absentFieldsOf(schemas: SchemaRegistry, schema: SchemaName): AbsentFields {
  const fields = fieldsOf({ schemas, file: schema }, schemas.document(schema));
  const isUnknownNull = (name: string, value: unknown): boolean => value === null && !fields.named.has(name);
  return {
    withoutNulls(body) {
      if (!isRecord(body)) return body;
      const known = Object.entries(body).filter(([name, value]) => !isUnknownNull(name, value));
      return leftOut(Object.fromEntries(known), fields, isAbsentNull);
    },
    withoutDefaults: (body) => leftOut(body, fields, isDefault),
  };
}

function isAbsentNull(value: unknown, field: Fields): boolean {
  return value === null && !field.isNullable;
}

function isDefault(value: unknown, field: Fields): boolean {
  return field.default !== undefined && JSON.stringify(value) === JSON.stringify(field.default);
}

/** A value without the named fields that count as absent. */
function leftOut(value: unknown, { named, items }: Fields, isAbsent: typeof isDefault): unknown {
  if (Array.isArray(value)) return items === null ? value : value.map((each) => leftOut(each, items, isAbsent));
  if (!isRecord(value)) return value;
  // Not assigned one by one, because an assignment to `__proto__` would not create a field.
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]): readonly (readonly [string, unknown])[] => {
      const field = named.get(name);
      if (field === undefined) return [[name, member]];
      const kept = leftOut(member, field, isAbsent);
      return isAbsent(kept, field) ? [] : [[name, kept]];
    }),
  );
}

interface SchemaLocation {
  readonly schemas: SchemaRegistry;
  /** The schema file that local references start from. */
  readonly file: string;
}

/** Schemas of request bodies refer to others, but never in a cycle. */
function fieldsOf(location: SchemaLocation, schema: JsonSchema): Fields {
  const { $ref: ref, properties = {}, items, anyOf } = schema;
  if (typeof ref === 'string') return fieldsAt(location, ref);
  if (Array.isArray(anyOf)) return nullableFields(location, anyOf);
  const named = Object.entries(properties).map(([name, field]): readonly [string, Fields] => [
    name,
    name === STATE_FIELD ? NO_FIELDS : fieldsOf(location, field),
  ]);
  return {
    named: new Map(named),
    items: isRecord(items) ? fieldsOf(location, items) : null,
    default: schema.default,
    isNullable: false,
  };
}

/** The fields of `anyOf: [schema, { type: 'null' }]`. */
function nullableFields(location: SchemaLocation, anyOf: readonly unknown[]): Fields {
  const [other] = anyOf.filter((each) => isRecord(each) && each['type'] !== 'null');
  return { ...(isRecord(other) ? fieldsOf(location, other) : NO_FIELDS), isNullable: true };
}

function fieldsAt({ schemas, file }: SchemaLocation, ref: string): Fields {
  const [name = '', pointer = ''] = ref.split('#');
  const target = name === '' ? file : name;
  let found: unknown = schemas.document(target);
  for (const part of pointer.split('/').slice(1)) found = isRecord(found) ? found[part] : undefined;
  if (!isRecord(found)) throw new Error(`Cannot find "${ref}", which ${file} refers to`);
  return fieldsOf({ schemas, file: target }, found);
}
