/**
 * The language of conditional edges (contract, "How a blueprint runs"): a bare word compared with the route, or an
 * expression over `score`, `iteration`, `route` and `draft_length`. Read once into closures, never evaluated as code.
 */
import { ConditionInvalid } from '../errors.js';

/** What a condition may look at. */
export interface ConditionFacts {
  /** The last critic's decision as routing sees it; null before the first. */
  readonly route: string | null;
  /** Null before the first score. */
  readonly score: number | null;
  /** Drafts of the run so far. */
  readonly iteration: number;
  /** Code points of the draft, 0 without one. Conditions ask for it again and again: count it once. */
  readonly draftLength: number;
}

export interface Condition {
  /** The bare word it consists of; null for an expression. */
  readonly word: string | null;
  /** A comparison with a value that does not exist yet, or of two kinds, is false; `!=` is true. Total. */
  readonly holds: (facts: ConditionFacts) => boolean;
}

/** Longest condition, in UTF-16 units, and its deepest nesting of `(` and `!`: far past any a human writes. */
export const MAX_CONDITION_CHARS = 1_000;
const MAX_NESTING = 32;

/**
 * Reads a condition.
 *
 * @throws {ConditionInvalid} and nothing else, whatever the text
 */
export function parseCondition(text: string): Condition {
  if (text.length > MAX_CONDITION_CHARS) {
    return invalid(MAX_CONDITION_CHARS, `it is longer than ${MAX_CONDITION_CHARS} characters`);
  }
  const tokens = tokensOf(text);
  const [first, second] = tokens;
  if (first?.kind === 'word' && second?.kind === 'end' && !isVariable(first.text)) {
    const word = first.text;
    return { word, holds: ({ route }) => route === word };
  }
  const reader = readerOf(tokens);
  const holds = anyOf(reader, 0);
  const rest = reader.next();
  return rest.kind === 'end' ? { word: null, holds } : unexpected(rest, 'the end');
}

/** A condition; null when it cannot be read. */
export function conditionOrNull(text: string): Condition | null {
  try {
    return parseCondition(text);
  } catch (error) {
    if (error instanceof ConditionInvalid) return null;
    throw error;
  }
}

type Holds = Condition['holds'];
type Value = string | number | null;
type ValueOf = (facts: ConditionFacts) => Value;

/** `||` binds weakest, then `&&`, then `!`. */
function anyOf(reader: Reader, depth: number): Holds {
  const parts = [allOf(reader, depth)];
  while (reader.take('||')) parts.push(allOf(reader, depth));
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : (facts) => parts.some((part) => part(facts));
}

function allOf(reader: Reader, depth: number): Holds {
  const parts = [term(reader, depth)];
  while (reader.take('&&')) parts.push(term(reader, depth));
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : (facts) => parts.every((part) => part(facts));
}

function term(reader: Reader, depth: number): Holds {
  if (depth > MAX_NESTING) return invalid(reader.peek().at, `it is nested more than ${MAX_NESTING} deep`);
  if (reader.take('!')) {
    const negated = term(reader, depth + 1);
    return (facts) => !negated(facts);
  }
  if (!reader.take('(')) return comparison(reader);
  const inner = anyOf(reader, depth + 1);
  return reader.take(')') ? inner : unexpected(reader.peek(), '")"');
}

function comparison(reader: Reader): Holds {
  const left = operand(reader.next());
  const token = reader.next();
  const compare = token.kind === 'sign' ? COMPARISONS.get(token.text) : undefined;
  if (compare === undefined) return unexpected(token, 'one of < <= > >= == !=');
  const right = operand(reader.next());
  return (facts) => compare(left(facts), right(facts));
}

function operand(token: Token): ValueOf {
  if (token.kind === 'value') return () => token.value;
  const variable = token.kind === 'word' ? VARIABLES.get(token.text) : undefined;
  return variable ?? unexpected(token, 'score, iteration, route, draft_length, a number or a quoted string');
}

const VARIABLES: ReadonlyMap<string, ValueOf> = new Map<string, ValueOf>([
  ['score', ({ score }) => score],
  ['iteration', ({ iteration }) => iteration],
  ['route', ({ route }) => route],
  ['draft_length', ({ draftLength }) => draftLength],
]);

function isVariable(word: string): boolean {
  return VARIABLES.has(word);
}

const ordered =
  (test: (left: number, right: number) => boolean) =>
  (left: Value, right: Value): boolean =>
    typeof left === 'number' && typeof right === 'number' && test(left, right);

const COMPARISONS: ReadonlyMap<string, (left: Value, right: Value) => boolean> = new Map([
  ['<', ordered((left, right) => left < right)],
  ['<=', ordered((left, right) => left <= right)],
  ['>', ordered((left, right) => left > right)],
  ['>=', ordered((left, right) => left >= right)],
  ['==', (left: Value, right: Value) => left !== null && left === right],
  ['!=', (left: Value, right: Value) => left === null || left !== right],
]);

type Token = { readonly at: number; readonly text: string } & (
  { readonly kind: 'word' | 'sign' | 'end' } | { readonly kind: 'value'; readonly value: string | number }
);

interface Reader {
  peek(): Token;
  /** The token, passed over; the end is given again and again. */
  next(): Token;
  /** Passes over a sign when it is next. */
  take(sign: string): boolean;
}

function readerOf(tokens: readonly Token[]): Reader {
  let place = 0;
  const end: Token = { kind: 'end', at: tokens.at(-1)?.at ?? 0, text: '' };
  const peek = (): Token => tokens[place] ?? end;
  const next = (): Token => {
    const token = peek();
    place += 1;
    return token;
  };
  const take = (sign: string): boolean => {
    const isNext = peek().kind === 'sign' && peek().text === sign;
    if (isNext) place += 1;
    return isNext;
  };
  return { peek, next, take };
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  // A copy of its own: a regular expression with a place in the text keeps that place.
  const reader = new RegExp(TOKEN);
  while (reader.lastIndex < text.length) {
    const at = reader.lastIndex;
    const [all = '', number, quoted, word, sign] = reader.exec(text) ?? unreadable(text, at);
    if (number !== undefined) tokens.push({ kind: 'value', at, text: all, value: finite(number, at) });
    else if (quoted !== undefined) tokens.push({ kind: 'value', at, text: all, value: unquoted(quoted) });
    else if (word !== undefined) tokens.push({ kind: 'word', at, text: word });
    else if (sign !== undefined) tokens.push({ kind: 'sign', at, text: sign });
  }
  return [...tokens, { kind: 'end', at: text.length, text: '' }];
}

/** Blanks; or number, quoted string (a backslash takes the next character as it is), word, sign. */
const TOKEN =
  /\s+|(-?\d+(?:\.\d+)?)(?![\p{L}\p{N}_.])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([\p{L}_][\p{L}\p{M}\p{N}_-]*)|(<=|>=|==|!=|&&|\|\||[<>!()])/suy;

function unreadable(text: string, at: number): never {
  const isNumeric = /[-+.\d]/.test(text.charAt(at));
  return invalid(at, isNumeric ? 'numbers are written as in 8, 0.5 or -1' : 'this cannot be read');
}

function finite(number: string, at: number): number {
  const value = Number(number);
  return Number.isFinite(value) ? value : invalid(at, 'the number is too large');
}

function unquoted(text: string): string {
  return text.slice(1, -1).replaceAll(/\\(.)/gsu, '$1');
}

function unexpected(token: Token, wanted: string): never {
  const found = token.kind === 'end' ? 'the end' : JSON.stringify([...token.text].slice(0, 40).join(''));
  return invalid(token.at, `${found} stands where ${wanted} is wanted`);
}

function invalid(position: number, reason: string): never {
  throw new ConditionInvalid({ position, reason });
}
