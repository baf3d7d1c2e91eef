/** Validates values against their schemas. Reports broken rules as FastAPI does: location, message and type. */
import type { DefinedError, JSONType, ValidateFunction } from 'ajv/dist/2020.js';
import type { Budget, BlueprintCreate, FieldError } from '../generated/schemas.js';
import { elementAt, isKeyOf, present } from '../system/element.js';
import { brokenRules } from './problems.js';
import { savedMembers } from '../blueprint/members.js';
import { MAX_BLUEPRINT_BYTES, isBlueprintId, repeatedNode } from '../blueprint/record.js';

/** Most broken rules in one answer. */
const MAX_REPORTED = 20;

/**
 * The value, if it fits its schema.
 *
 * @param source where the value came from: the first part of each `loc`
 * @throws {RequestRefused} 422 with the broken rules
 */
export function validated<T>(validate: ValidateFunction<T>, value: unknown, source: Source): T {
  if (validate(value)) return value;
  // The schemas' custom keywords report no errors, so ajv's union by keyword is complete.
  const errors = present(validate.errors, 'broken rule').map((error) => error as DefinedError);
  throw brokenRules(
    errors
      .filter(isReported)
      .slice(0, MAX_REPORTED)
      .map((error) => fieldError(error, source)),
  );
}

/** A value that may be null instead breaks the rules of its own schema; that it is not null says nothing. */
function isReported(error: DefinedError): boolean {
  return error.keyword !== 'anyOf' && !(error.keyword === 'type' && [error.params.type].flat().join() === 'null');
}

/** The part of a request that a value came from, or the path to it. */
type Source = 'body' | 'query' | readonly string[];

function fieldError(error: DefinedError, source: Source): FieldError {
  const loc = [source, partsOf(error.instancePath)].flat();
  switch (error.keyword) {
    case 'required':
      return { loc: [...loc, error.params.missingProperty], msg: 'Field required', type: 'missing' };
    case 'type':
      return { loc, ...wrongType([error.params.type].flat()) };
    case 'minLength':
      return {
        loc,
        msg: `String should have at least ${countOf(error.params.limit, 'character')}`,
        type: 'string_too_short',
      };
    case 'maxLength':
      return {
        loc,
        msg: `String should have at most ${countOf(error.params.limit, 'character')}`,
        type: 'string_too_long',
      };
    case 'minimum':
      return { loc, msg: `Input should be greater than or equal to ${error.params.limit}`, type: 'greater_than_equal' };
    case 'exclusiveMinimum':
      return { loc, msg: `Input should be greater than ${error.params.limit}`, type: 'greater_than' };
    case 'maximum':
      return { loc, msg: `Input should be less than or equal to ${error.params.limit}`, type: 'less_than_equal' };
    case 'minItems':
      return { loc, msg: `List should have at least ${countOf(error.params.limit, 'item')}`, type: 'too_short' };
    case 'maxItems':
      return { loc, msg: `List should have at most ${countOf(error.params.limit, 'item')}`, type: 'too_long' };
    case 'uniqueItems':
      return { loc: [...loc, error.params.i], msg: 'An earlier item is the same', type: 'duplicate' };
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

/** @param expected types of JSON, as the schema lists them */
function wrongType(expected: readonly string[]): Pick<FieldError, 'msg' | 'type'> {
  const first = elementAt(expected, 0);
  const type = isKeyOf(WRONG_TYPES, first) ? WRONG_TYPES[first] : 'value_error';
  return { msg: `Input should be a valid ${expected.join(' or ')}`, type };
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

function countOf(count: number, what: string): string {
  return `${count} ${count === 1 ? what : `${what}s`}`;
}

/** The parts of a JSON Pointer (RFC 6901), array indexes as numbers. */
function partsOf(pointer: string): readonly (string | number)[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    return /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : name;
  });
}

// Rules of a blueprint that JSON Schema cannot express.

/** Largest body of a blueprint in bytes, and its deepest nesting: its event must fit one append. */
export const BODY_LIMITS = { maxBytes: MAX_BLUEPRINT_BYTES, maxDepth: 64 };

/** Node ids with another meaning on the channel: its `node_active` names `done` when a run has ended. */
const RESERVED_NODES: ReadonlySet<string> = new Set(['done']);

type CheckedFields = Partial<Pick<BlueprintCreate, 'id' | 'nodes'>> & { readonly budget?: Budget | null | undefined };

/** Refuses reserved ids, repeated ids, and too few members of panels and quorums. @throws {RequestRefused} 422 */
export function assertRules({ id, nodes = [], budget }: CheckedFields): void {
  assertBudget(budget);
  const errors: FieldError[] = [];
  if (id !== undefined && !isBlueprintId(id)) {
    errors.push({ loc: ['body', 'id'], msg: `The id "${id}" is reserved`, type: 'reserved' });
  }
  const reserved = nodes.findIndex((node) => RESERVED_NODES.has(node.id));
  if (reserved >= 0) {
    const msg = `The id "${nodes[reserved]?.id}" is reserved: it means that a run has ended`;
    errors.push({ loc: ['body', 'nodes', reserved, 'id'], msg, type: 'reserved' });
  }
  const repeated = repeatedNode(nodes);
  if (repeated >= 0) {
    errors.push({ loc: ['body', 'nodes', repeated, 'id'], msg: 'An earlier node has this id', type: 'duplicate' });
  }
  errors.push(...nodes.flatMap((node, index) => memberErrors(node, ['body', 'nodes', index])).slice(0, MAX_REPORTED));
  if (errors.length > 0) throw brokenRules(errors);
}

/** Fewest members of a panel (contract, section 6.4). */
const MIN_PANEL = 2;

/** Rules of members. The fields that a node's role ignores get a warning instead. */
function memberErrors(
  { type, members, quorum = 0 }: BlueprintCreate['nodes'][number],
  loc: FieldError['loc'],
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const place = [...loc, 'members'];
  if (type === 'panel' && members === undefined) {
    errors.push({ loc: place, msg: `Field required: a panel has ${MIN_PANEL} to 8 members`, type: 'missing' });
  } else if (type === 'panel' && members !== undefined && members.length < MIN_PANEL) {
    errors.push({ loc: place, msg: `List should have at least ${MIN_PANEL} items`, type: 'too_short' });
  }
  if (members === undefined) return errors;
  const repeated = repeatedNode(savedMembers(members));
  if (repeated >= 0) {
    errors.push({ loc: [...place, repeated, 'id'], msg: 'An earlier member has this id', type: 'duplicate' });
  }
  if (members.length > 0 && quorum > members.length) {
    const msg = `Input should be less than or equal to ${members.length}, the number of members`;
    errors.push({ loc: [...loc, 'quorum'], msg, type: 'less_than_equal' });
  }
  return errors;
}

/** Refuses a budget without a limit. @throws {RequestRefused} 422 */
export function assertBudget(budget: Budget | null | undefined): void {
  if (budget === undefined || budget === null || budget.usd !== undefined || budget.tokens !== undefined) return;
  throw brokenRules([{ loc: ['body', 'budget'], msg: 'A budget should set usd, tokens or both', type: 'missing' }]);
}
