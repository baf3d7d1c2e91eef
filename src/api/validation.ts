/**
 * From the bytes of a request to a usable value: parsed strictly, nulls left out, validated against its schema. Broken
 * rules are reported as FastAPI does: location, message and type.
 */
import type { DefinedError, JSONType, ValidateFunction } from 'ajv/dist/2020.js';
import type { BlueprintCreate, BlueprintUpdate, FieldError } from '../generated/schemas.js';
import { elementAt, isKeyOf, present } from '../system/element.js';
import { brokenRules } from './problems.js';
import { MAX_BLUEPRINT_BYTES, isBlueprintId, repeatedNode } from '../blueprint/record.js';
import type { JsonSchema, SchemaName, SchemaRegistry } from './schemas.js';
import { isRecord } from '../system/untrusted.js';

/** Most broken rules reported in one answer. */
const MAX_REPORTED = 20;

/**
 * The value, when its schema takes it.
 *
 * @param source where the value came from: the first part of each `loc`
 * @throws {RequestRefused} 422, with the rules that are broken
 */
export function validated<T>(validate: ValidateFunction<T>, value: unknown, source: Source): T {
  if (validate(value)) return value;
  const errors = present(validate.errors, 'broken rule').slice(0, MAX_REPORTED);
  // No keyword of our own reports errors, so ajv's union by keyword is all there are.
  throw brokenRules(errors.map((error) => fieldError(error as DefinedError, source)));
}

/** The part of a request a value came from, or the way to it there. */
type Source = 'body' | 'query' | readonly string[];

function fieldError(error: DefinedError, source: Source): FieldError {
  const loc = [source, partsOf(error.instancePath)].flat();
  switch (error.keyword) {
    case 'required':
      return { loc: [...loc, error.params.missingProperty], msg: 'Field required', type: 'missing' };
    case 'type':
      return { loc, ...wrongType([error.params.type].flat()) };
    case 'minLength':
      return { loc, msg: `String should have at least ${characters(error.params.limit)}`, type: 'string_too_short' };
    case 'maxLength':
      return { loc, msg: `String should have at most ${characters(error.params.limit)}`, type: 'string_too_long' };
    case 'minimum':
      return { loc, msg: `Input should be greater than or equal to ${error.params.limit}`, type: 'greater_than_equal' };
    case 'maximum':
      return { loc, msg: `Input should be less than or equal to ${error.params.limit}`, type: 'less_than_equal' };
    case 'maxItems':
      return { loc, msg: `List should have at most ${error.params.limit} items`, type: 'too_long' };
    case 'pattern':
      return { loc, msg: `String should ${patternRule(error.params.pattern)}`, type: 'string_pattern_mismatch' };
    case 'enum':
      return { loc, msg: `Input should be one of ${JSON.stringify(error.params.allowedValues)}`, type: 'enum' };
    case 'additionalProperties':
      return { loc: [...loc, error.params.additionalProperty], msg: 'Field is not known', type: 'extra_forbidden' };
    default:
      return { loc, msg: `Input ${error.message ?? 'is not valid'}`, type: 'value_error' };
  }
}

/** The pattern of a node's label in `blueprint-node.json`. */
const ONE_LINE = String.raw`^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$`;

function patternRule(pattern: string): string {
  return pattern === ONE_LINE ? 'be one line without control characters' : `match ${pattern}`;
}

/** @param wanted types of JSON, as the schema lists them */
function wrongType(wanted: readonly string[]): Pick<FieldError, 'msg' | 'type'> {
  const first = elementAt(wanted, 0);
  const type = isKeyOf(WRONG_TYPES, first) ? WRONG_TYPES[first] : 'value_error';
  return { msg: `Input should be a valid ${wanted.join(' or ')}`, type };
}

const WRONG_TYPES: Readonly<Record<JSONType, string>> = {
  string: 'string_type',
  boolean: 'bool_type',
  integer: 'int_type',
  number: 'float_type',
  object: 'dict_type',
  array: 'list_type',
  null: 'value_error',
};

function characters(count: number): string {
  return count === 1 ? '1 character' : `${count} characters`;
}

/** The parts of a JSON Pointer (RFC 6901); what looks like an index becomes a number. */
function partsOf(pointer: string): readonly (string | number)[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    return /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : name;
  });
}

// Rules of a blueprint that JSON Schema cannot express.

/** Largest body of a blueprint in bytes, and its deepest nesting: the event that holds it must fit one append. */
export const BODY_LIMITS = { maxBytes: MAX_BLUEPRINT_BYTES, maxDepth: 64 };

/** Node ids that mean something else on the channel: its `node_active` names `done` once a run has ended. */
const RESERVED_NODES: ReadonlySet<string> = new Set(['done']);

/** Refuses reserved ids, of nodes too, and node ids that come twice. @throws {RequestRefused} 422 */
export function assertRules({ id, nodes = [] }: Partial<BlueprintCreate> & BlueprintUpdate): void {
  const errors: FieldError[] = [];
  if (id !== undefined && !isBlueprintId(id)) {
    errors.push({ loc: ['body', 'id'], msg: `The id "${id}" is reserved`, type: 'reserved' });
  }
  const reserved = nodes.findIndex((node) => RESERVED_NODES.has(node.id));
  if (reserved >= 0) {
    const msg = `The id "${nodes[reserved]?.id}" is reserved: it tells that a run has ended`;
    errors.push({ loc: ['body', 'nodes', reserved, 'id'], msg, type: 'reserved' });
  }
  const repeated = repeatedNode(nodes);
  if (repeated >= 0) {
    errors.push({ loc: ['body', 'nodes', repeated, 'id'], msg: 'An earlier node has this id', type: 'duplicate' });
  }
  if (errors.length > 0) throw brokenRules(errors);
}

// JSON from outside, as far as this service can hold it: UTF-8, well-formed text, finite numbers, bounded nesting.

/** Deepest nesting taken: what the canonical form of a body can hold. */
const MAX_DEPTH = 512;

/**
 * The value of a JSON text.
 *
 * @param maxDepth deepest nesting taken, at most the default of 512
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
  if (text.trim() === '') throw brokenRules([unreadable('Body should be JSON: it is empty')]);
  try {
    return JSON.parse(text);
  } catch {
    throw brokenRules([unreadable('Body should be JSON: it cannot be parsed')]);
  }
}

/** A list or record still to be looked into. */
interface Container {
  readonly value: object;
  readonly depth: number;
  /** Field of the body it belongs to; null for the body itself. */
  readonly field: string | null;
}

/** Goes without recursion: the depth of the value is the client's choice. */
function faultIn(root: unknown, maxDepth: number): FieldError | null {
  const open: Container[] = [];
  const look = (value: unknown, depth: number, field: string | null): FieldError | null => {
    if (typeof value === 'string' && !value.isWellFormed()) return unpaired(field);
    if (typeof value === 'number' && !Number.isFinite(value)) return unreadable('Number out of range', field);
    if (typeof value === 'object' && value !== null) {
      if (depth >= maxDepth) return unreadable(`Nesting should be at most ${maxDepth} deep`, field);
      open.push({ value, depth, field });
    }
    return null;
  };
  const fault = look(root, 0, null);
  if (fault !== null) return fault;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth, field } = next;
    for (const [key, member] of Object.entries(value)) {
      const found = key.isWellFormed() ? look(member, depth + 1, field ?? key) : unpaired(field);
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

// Leaves out of request bodies the fields that count as absent, so that clients may write out what they do not set.

/** Fields of a record that its schema names, each with the fields of the records in it. */
interface Fields {
  readonly named: ReadonlyMap<string, Fields>;
  /** The same for the records in a list. */
  readonly items: Fields | null;
}

const NO_FIELDS: Fields = { named: new Map(), items: null };

/** The field in which null is a value: what a human changes of a run's state. */
const STATE_FIELD = 'modified_state';

/**
 * A function that leaves out of a body each field that is null: every one of the body itself, and those that the schema
 * names of the records in it. Unknown fields of nodes and edges are kept as they are, null too.
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
  // Entries are defined, not assigned: a field may have the name of an inherited one.
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
  /** Schema file that references within it start from. */
  readonly file: string;
}

/** Schemas of request bodies refer to others, but never in a circle. */
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
