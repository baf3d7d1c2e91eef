/**
 * The language of conditional edges: a bare word that is compared with the route, or an expression over `score`,
 * `iteration`, `route`, `draft_length`, `agreement` and `spread`. Parsed into closures, never evaluated as code.
 */
import { CouncilError } from '../errors.js';

/** A text is not a valid condition. `position` counts UTF-16 units from 0. */
export class ConditionInvalid extends CouncilError<{ position: number; reason: string }> {
  readonly code = 'condition.invalid';
  constructor(data: { position: number; reason: string }) {
    super(`Cannot read the condition at position ${data.position}: ${data.reason}`, data);
  }
}

/** The variables of a condition. */
export interface ConditionFacts {
  /** The last verdict, or null before the first. */
  readonly route: string | null;
  /** The last score, or null before the first. */
  readonly score: number | null;
  /** Drafts of the run so far. */
  readonly iteration: number;
  /** Code points of the draft, 0 without one. */
  readonly draftLength: () => number;
  /** Kendall's W of the last rank, or null before the first and where it is not defined. */
  readonly agreement: number | null;
  /** Highest minus lowest score of the last jury, or null before the first. */
  readonly spread: number | null;
}

export interface Condition {
  /** The bare word, or null for an expression. */
  readonly word: string | null;
  /**
   * Whether the condition holds. A comparison with a missing value or between two types is false, but `!=` is true.
   * Never throws.
   */
  readonly holds: (facts: ConditionFacts) => boolean;
  /** The variables that it names. */
  readonly variables: readonly string[];
}

/** Longest condition, in UTF-16 units, and deepest nesting of `(` and `!`. */
export const MAX_CONDITION_CHARS = 1_000;
const MAX_NESTING = 32;

/**
 * Parses a condition.
 *
 * @throws {ConditionInvalid} only
 */
export function parseCondition(text: string): Condition {
  if (text.length > MAX_CONDITION_CHARS) {
    return invalid(MAX_CONDITION_CHARS, `it is longer than ${MAX_CONDITION_CHARS} characters`);
  }
  const tokens = tokensOf(text);
  const [first, second] = tokens;
  if (first?.kind === 'word' && second?.kind === 'end' && !isVariable(first.text)) {
    const word = first.text;
    return { word, holds: ({ route }) => route === word, variables: ['route'] };
  }
  const reader = readerOf(tokens);
  const holds = truthOf(anyOf(reader, 0), reader);
  const rest = reader.next();
  if (rest.kind !== 'end') return unexpected(rest, 'the end');
  const variables = tokens.flatMap(({ kind, text: name }) => (kind === 'word' ? [name] : []));
  return { word: null, holds, variables: [...new Set(variables)] };
}

/** A condition, or null if it is invalid. */
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

/** An operand: a value to compare, or a truth value. */
type Operand = { readonly kind: 'value'; readonly of: ValueOf } | { readonly kind: 'truth'; readonly holds: Holds };

/** Precedence from the lowest: `||`, `&&`, `!`, comparison. */
function anyOf(reader: Reader, depth: number): Operand {
  return joined('||', reader, {
    part: () => allOf(reader, depth),
    holds: (all, facts) => all.some((each) => each(facts)),
  });
}

function allOf(reader: Reader, depth: number): Operand {
  return joined('&&', reader, {
    part: () => term(reader, depth),
    holds: (all, facts) => all.every((each) => each(facts)),
  });
}

/** Operands joined by an operator, or a single operand. */
function joined(
  sign: '||' | '&&',
  reader: Reader,
  {
    part,
    holds,
  }: {
    readonly part: () => Operand;
    readonly holds: (all: readonly Holds[], facts: ConditionFacts) => boolean;
  },
): Operand {
  const first = part();
  if (!reader.isNext(sign)) return first;
  const all = [truthOf(first, reader)];
  while (reader.take(sign)) all.push(truthOf(part(), reader));
  return { kind: 'truth', holds: (facts) => holds(all, facts) };
}

function term(reader: Reader, depth: number): Operand {
  if (depth > MAX_NESTING) return invalid(reader.peek().at, `it is nested more than ${MAX_NESTING} deep`);
  if (reader.take('!')) {
    const negated = truthOf(term(reader, depth + 1), reader);
    return { kind: 'truth', holds: (facts) => !negated(facts) };
  }
  const left = operand(reader, depth);
  if (left.kind === 'truth') return left;
  const token = reader.peek();
  const compare = token.kind === 'sign' ? COMPARISONS.get(token.text) : undefined;
  if (compare === undefined) return left;
  reader.next();
  const place = reader.peek();
  const right = operand(reader, depth);
  if (right.kind === 'truth') return unexpected(place, OPERANDS);
  return { kind: 'truth', holds: (facts) => compare(left.of(facts), right.of(facts)) };
}

/** A value, or anything in parentheses. */
function operand(reader: Reader, depth: number): Operand {
  if (!reader.take('(')) return { kind: 'value', of: valueOf(reader.next()) };
  const inner = anyOf(reader, depth + 1);
  return reader.take(')') ? inner : unexpected(reader.peek(), inner.kind === 'truth' ? '")"' : SIGNS);
}

/** The truth value of an operand. A plain value has none. */
function truthOf(part: Operand, reader: Reader): Holds {
  return part.kind === 'truth' ? part.holds : unexpected(reader.peek(), SIGNS);
}

const SIGNS = 'one of < <= > >= == !=';
const OPERANDS = 'score, iteration, route, draft_length, agreement, spread, a number or a quoted string';

function valueOf(token: Token): ValueOf {
  if (token.kind === 'value') return () => token.value;
  const variable = token.kind === 'word' ? VARIABLES.get(token.text) : undefined;
  return variable ?? unexpected(token, OPERANDS);
}

const VARIABLES: ReadonlyMap<string, ValueOf> = new Map<string, ValueOf>([
  ['score', ({ score }) => score],
  ['iteration', ({ iteration }) => iteration],
  ['route', ({ route }) => route],
  ['draft_length', ({ draftLength }) => draftLength()],
  ['agreement', ({ agreement }) => agreement],
  ['spread', ({ spread }) => spread],
]);

/** The value of a variable, as texts show it. */
export function valueShown(variable: string, facts: ConditionFacts): string {
  const value = VARIABLES.get(variable)?.(facts) ?? null;
  return typeof value === 'number' ? String(Number(value.toFixed(3))) : String(value);
}

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
  | { readonly kind: 'word' | 'sign' | 'end' }
  | { readonly kind: 'value'; readonly value: string | number }
);

interface Reader {
  peek(): Token;
  /** Consumes the next token. At the end, always returns the end token. */
  next(): Token;
  isNext(sign: string): boolean;
  /** Consumes a sign if it is next. */
  take(sign: string): boolean;
}

function readerOf(tokens: readonly Token[]): Reader {
  let place = 0;
  const last = tokens.at(-1);
  const end: Token = { kind: 'end', at: last === undefined ? 0 : last.at, text: '' };
  const peek = (): Token => tokens[place] ?? end;
  const next = (): Token => {
    const token = peek();
    place += 1;
    return token;
  };
  const isNext = (sign: string): boolean => peek().kind === 'sign' && peek().text === sign;
  const take = (sign: string): boolean => {
    const isThere = isNext(sign);
    if (isThere) place += 1;
    return isThere;
  };
  return { peek, next, isNext, take };
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  // A copy, because a sticky regular expression keeps its `lastIndex`.
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

/** Blanks, number, quoted string (a backslash escapes the next character), word or sign. */
const TOKEN =
  /\s+|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\p{L}\p{N}_.])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([\p{L}_][\p{L}\p{M}\p{N}_-]*)|(<=|>=|==|!=|&&|\|\||[<>!()])/suy;

function unreadable(text: string, at: number): never {
  const isNumeric = /[-+.\d]/.test(text.charAt(at));
  return invalid(at, isNumeric ? 'numbers are written as in 8, 0.5, -1 or 2e3' : 'this cannot be read');
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
  return invalid(token.at, `${found} found, ${wanted} expected`);
}

function invalid(position: number, reason: string): never {
  throw new ConditionInvalid({ position, reason });
}
