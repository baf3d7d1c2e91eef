/** Reads a critic's answer. A score decides the route of a run, so an ambiguous answer is not used. */
import { isList } from '../system/untrusted.js';
import { withoutAnyThoughts } from './thoughts.js';

/** A usable answer of a critic. */
export interface Critique {
  /** Finite, from 0 to 10. */
  readonly score: number;
  /** In well-formed Unicode. */
  readonly feedback: string;
}

/**
 * Reads the first JSON object with a `score` in an answer, also in a code fence, between words or after
 * `<think>…</think>`. The score is a number from 0 to 10 or its text, the feedback a text or a list of lines. Null if there
 * is none or it is unusable: two scores are ambiguous, and `"9/10"` is not a number.
 */
export function readCritique(answer: string): Critique | null {
  const object = parseObject(answer);
  if (object !== null) return critiqueOf(answer, object);
  const text = withoutAnyThoughts(answer).slice(0, MAX_SEARCHED_CHARS);
  for (const { json, value } of jsonObjectsIn(text)) {
    if (Object.hasOwn(value, 'score')) return critiqueOf(json, value);
  }
  return null;
}

function critiqueOf(json: string, object: object): Critique | null {
  const score = scoreOf(ownField(object, 'score'));
  const feedback = feedbackOf(ownField(object, 'feedback'));
  if (score === null || feedback === null) return null;
  if (hasDuplicateKey(json, 'score') || hasDuplicateKey(json, 'feedback')) return null;
  return { score, feedback: feedback.toWellFormed() };
}

function scoreOf(given: unknown): number | null {
  const score = typeof given === 'string' ? numberIn(given) : given;
  // JSON writes minus zero as zero, and the adopted state must equal the recorded one.
  return typeof score === 'number' && score >= 0 && score <= 10 ? Math.abs(score) : null;
}

/** The number in a text: as JSON writes it, with a decimal comma, or out of ten (`8/10`). */
function numberIn(text: string): number | null {
  const [, number] = NUMBER.exec(text) ?? [];
  return number === undefined ? null : Number(number.replace(',', '.'));
}

/** Missing feedback counts as empty (contract, section 5). */
function feedbackOf(given: unknown): string | null {
  if (given === undefined || given === null) return '';
  if (typeof given === 'string') return given;
  return isList(given) && given.every((line) => typeof line === 'string') ? given.join('\n') : null;
}

function ownField(object: object, name: string): unknown {
  return Object.hasOwn(object, name) ? Reflect.get(object, name) : undefined;
}

/** The outermost JSON objects in a text, in order. */
function* jsonObjectsIn(text: string): Generator<{ readonly json: string; readonly value: object }> {
  // A brace that can begin an object: prose and formulas use braces otherwise.
  const beginning = /\{\s*["}]/g;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const begin = beginning.exec(text)?.index;
    if (begin === undefined) return;
    const end = endOfObject(text, begin);
    const json = end === null ? '' : text.slice(begin, end);
    const value = parseObject(json);
    if (value !== null) yield { json, value };
    beginning.lastIndex = value === null ? begin + 1 : begin + json.length;
  }
}

/** End of the object that begins here, ignoring braces in strings, or null if it is not closed. */
function endOfObject(text: string, begin: number): number | null {
  let depth = 0;
  let isInString = false;
  for (let at = begin; at < text.length; at += 1) {
    const sign = text[at];
    if (isInString && sign === '\\') at += 1;
    else if (sign === '"') isInString = !isInString;
    else if (!isInString && sign === '{') depth += 1;
    else if (!isInString && sign === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return null;
}

/** The object in a JSON text. Repairs two faults, if there are any (see `repaired`). */
function parseObject(json: string): object | null {
  return parse(json) ?? parse(repaired(json));
}

function parse(json: string): object | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** JSON with raw line breaks in its strings escaped, and without commas before a closing bracket. */
function repaired(json: string): string {
  return json.replace(STRINGS_AND_COMMAS, (token) => {
    if (token.startsWith(',')) return '';
    return token.replace(/\r?\n|\r/g, '\\n').replaceAll('\t', '\\t');
  });
}

/** Strings, and commas that only space separates from a closing bracket. */
const STRINGS_AND_COMMAS = /"[^"\\]*(?:\\[^][^"\\]*)*"|,(?=\s*[}\]])/g;

/** Whether the outermost object of a valid JSON text has a key more than once; JSON.parse keeps only the last. */
function hasDuplicateKey(json: string, key: string): boolean {
  let depth = 0;
  let found = 0;
  for (const [token, name] of json.matchAll(NAMES_AND_BRACKETS)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && name !== undefined && JSON.parse(name) === key) found += 1;
  }
  return found > 1;
}

/** Brackets and strings, captured if a colon follows. Linear: no two quantifiers match the same character. */
const NAMES_AND_BRACKETS = /("[^"\\]*(?:\\.[^"\\]*)*")(?=\s*:)|"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;

/** A number as JSON writes it. */
const NUMBER = /^\s*(-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?)\s*(?:\/\s*10)?\s*$/;

/** Length of an answer that is searched for an object, in UTF-16 units. */
const MAX_SEARCHED_CHARS = 1024 * 1024;

/** Most braces to try: each may scan the rest of the text. */
const MAX_TRIES = 20;
