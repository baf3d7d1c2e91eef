/**
 * Parses JSON from clients and accepts only what the service can store: UTF-8, well-formed text, finite numbers,
 * bounded nesting.
 */
import type { FieldError } from '../generated/schemas.js';
import { brokenRules } from './problems.js';

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
