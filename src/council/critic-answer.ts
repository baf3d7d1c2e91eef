/** Reads a critic's answer. A score decides the route of a run, so an ambiguous answer is not used. */
import { isList } from '../system/untrusted.js';
import { jsonObjectsIn, parseObject } from '../models/json-in-text.js';
import { withoutAnyThoughts } from '../models/thoughts.js';

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
