/** Reads a critic's answer. A score decides the route of a run, so an ambiguous answer is not used. */
import { isList, isRecord } from '../system/untrusted.js';
import type { FoundObject } from '../models/json-in-text.js';
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
 * `<think>…</think>`; if there is none, the first that holds nothing but such an object. The score is a number from 0 to 10
 * or its text, the feedback a text or a list of lines. Null if there is none or it is unusable: two scores are ambiguous.
 */
export function readCritique(answer: string): Critique | null {
  const object = parseObject(answer);
  if (object !== null) return critiqueIn([{ json: answer, value: object }]);
  return critiqueIn([...jsonObjectsIn(withoutAnyThoughts(answer).slice(0, MAX_SEARCHED_CHARS))]);
}

type Found = Pick<FoundObject, 'json' | 'value'>;

function critiqueIn(objects: readonly Found[]): Critique | null {
  const found = [...objects, ...objects.flatMap(onlyObjectIn)].find(
    ({ value }) => fieldIn(value, 'score') !== undefined,
  );
  return found === undefined ? null : critiqueOf(found);
}

/** The object in an object that has one key, such as `{"result": {"score": 9}}`. */
function onlyObjectIn({ json, value }: Found): readonly Found[] {
  const [[key, inner] = [], ...others] = Object.entries(value);
  if (key === undefined || !/^[a-z]\w*$/i.test(key) || !isRecord(inner) || others.length > 0) return [];
  const end = json.lastIndexOf('}', json.lastIndexOf('}') - 1) + 1;
  const innerJson = json.slice(json.indexOf('{', json.indexOf(':')), end);
  const parsed = parseObject(innerJson);
  return parsed === null ? [] : [{ json: innerJson, value: parsed }];
}

function critiqueOf({ json, value }: Found): Critique | null {
  const score = scoreOf(fieldIn(value, 'score'));
  const feedback = feedbackOf(fieldIn(value, 'feedback'));
  if (score === null || feedback === null) return null;
  if (hasDuplicateKey(json, 'score') || hasDuplicateKey(json, 'feedback')) return null;
  return { score, feedback: feedback.toWellFormed() };
}

function scoreOf(given: unknown): number | null {
  const score = typeof given === 'string' ? numberIn(given) : given;
  // JSON writes minus zero as zero, and the adopted state must equal the recorded one.
  return typeof score === 'number' && score >= 0 && score <= 10 ? Math.abs(score) : null;
}

/** The number in a text: as JSON writes it, with a decimal comma, out of ten (`8/10`), or in percent. */
function numberIn(text: string): number | null {
  const [, digits, unit = ''] = NUMBER.exec(text) ?? [];
  if (digits === undefined) return null;
  const number = Number(digits.replace(',', '.'));
  return unit === '%' ? number / 10 : number;
}

/** Missing feedback counts as empty (contract, section 5). */
function feedbackOf(given: unknown): string | null {
  if (given === undefined || given === null) return '';
  if (typeof given === 'string') return given;
  return isList(given) && given.every((line) => typeof line === 'string') ? given.join('\n') : null;
}

/** A field of an object, in any case. */
function fieldIn(object: object, name: string): unknown {
  return Object.entries(object).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** Whether the outermost object of a valid JSON text has a key more than once, in any case. */
function hasDuplicateKey(json: string, key: string): boolean {
  let depth = 0;
  let found = 0;
  for (const [token, name] of json.matchAll(NAMES_AND_BRACKETS)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && name !== undefined && String(JSON.parse(name)).toLowerCase() === key) found += 1;
  }
  return found > 1;
}

/** Brackets and strings, captured if a colon follows. Linear: no two quantifiers match the same character. */
const NAMES_AND_BRACKETS = /("[^"\\]*(?:\\.[^"\\]*)*")(?=\s*:)|"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;

/** A number as JSON writes it. */
const NUMBER = /^\s*(-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?)\s*(%|\/\s*10)?\s*$/;

/** Length of an answer that is searched for an object, in UTF-16 units. */
const MAX_SEARCHED_CHARS = 1024 * 1024;
