/** Validates values against their schemas and reports broken rules as FastAPI does: location, message and type. */
import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import type { BlueprintCreate, BlueprintUpdate, FieldError } from '../generated/schemas.js';
import { brokenRules } from './problems.js';
import { MAX_BLUEPRINT_BYTES, isBlueprintId, repeatedNode } from '../blueprint/record.js';

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
  const errors = (validate.errors ?? []).slice(0, MAX_REPORTED);
  throw brokenRules(errors.map((error) => fieldError(error, source)));
}

/** The part of a request a value came from, or the way to it there. */
type Source = 'body' | 'query' | readonly string[];

interface Parameters {
  readonly missingProperty?: string;
  readonly limit?: number;
  readonly pattern?: string;
  readonly type?: string | readonly string[];
  readonly allowedValues?: readonly unknown[];
  readonly additionalProperty?: string;
}

function fieldError({ keyword, instancePath, params, message }: ErrorObject, source: Source): FieldError {
  const { missingProperty, limit = 0, pattern, type, allowedValues = [] }: Parameters = params;
  const { additionalProperty = '' }: Parameters = params;
  const loc = [source, partsOf(instancePath)].flat();
  switch (keyword) {
    case 'required':
      return { loc: [...loc, missingProperty ?? ''], msg: 'Field required', type: 'missing' };
    case 'type':
      return { loc, ...wrongType([type ?? []].flat()) };
    case 'minLength':
      return { loc, msg: `String should have at least ${characters(limit)}`, type: 'string_too_short' };
    case 'maxLength':
      return { loc, msg: `String should have at most ${characters(limit)}`, type: 'string_too_long' };
    case 'minimum':
      return { loc, msg: `Input should be greater than or equal to ${limit}`, type: 'greater_than_equal' };
    case 'maximum':
      return { loc, msg: `Input should be less than or equal to ${limit}`, type: 'less_than_equal' };
    case 'maxItems':
      return { loc, msg: `List should have at most ${limit} items`, type: 'too_long' };
    case 'pattern':
      return { loc, msg: `String should match ${String(pattern)}`, type: 'string_pattern_mismatch' };
    case 'enum':
      return { loc, msg: `Input should be one of ${JSON.stringify(allowedValues)}`, type: 'enum' };
    case 'additionalProperties':
      return { loc: [...loc, additionalProperty], msg: 'Field is not known', type: 'extra_forbidden' };
    default:
      return { loc, msg: `Input ${message ?? 'is not valid'}`, type: 'value_error' };
  }
}

function wrongType(wanted: readonly string[]): Pick<FieldError, 'msg' | 'type'> {
  const type = WRONG_TYPES[wanted[0] ?? ''] ?? 'value_error';
  return { msg: `Input should be a valid ${wanted.join(' or ')}`, type };
}

const WRONG_TYPES: Readonly<Record<string, string>> = {
  string: 'string_type',
  boolean: 'bool_type',
  integer: 'int_type',
  number: 'float_type',
  object: 'dict_type',
  array: 'list_type',
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
