/** Finds and reads the JSON object in a model's answer. */
import { holdsManyValues, isList, isRecord } from '../system/untrusted.js';
import type { FoundObject } from '../models/json-in-text.js';
import { jsonObjectsIn, parseObject } from '../models/json-in-text.js';
import { withoutAnyThoughts } from '../models/thoughts.js';

/**
 * The first JSON object in an answer that has one of the fields `named`, also in a code fence, between words or after
 * `<think>…</think>`; if there is none, the first that holds nothing but such an object. Null if there is none, or if it has
 * one of the fields twice, in any case: which of them counts is unknown.
 *
 * @param others further fields that are read
 */
export function answerWith(answer: string, named: readonly string[], others: readonly string[] = []): object | null {
  const isReadable = answer.length <= MAX_PARSED_CHARS && !holdsManyValues(answer);
  const whole = isReadable ? parseObject(answer) : null;
  const objects: readonly Found[] =
    whole === null
      ? [...jsonObjectsIn(withoutAnyThoughts(answer).slice(0, MAX_SEARCHED_CHARS))]
      : [{ json: answer, value: whole }];
  const isNamed = ({ value }: Found): boolean => named.some((field) => fieldIn(value, field) !== undefined);
  const found = objects.find(isNamed) ?? objects.flatMap(onlyObjectIn).find(isNamed);
  if (found === undefined) return null;
  const keys = outermostKeys(found.json);
  const isTwice = (field: string): boolean => keys.indexOf(field) !== keys.lastIndexOf(field);
  return [...named, ...others].some(isTwice) ? null : found.value;
}

/**
 * The JSON values that an answer may mean, the likeliest first: the whole, or else what stands in code fences, or else lists and
 * objects between words or after `<think>…</think>`.
 */
export function jsonValuesIn(answer: string): readonly unknown[] {
  const text = withoutAnyThoughts(answer).slice(0, MAX_PARSED_CHARS).toWellFormed();
  const whole = valuesOf(text);
  if (whole.length > 0) return whole;
  const fenced = [...text.matchAll(FENCE)].slice(0, MAX_CANDIDATES).flatMap(([, inside = '']) => valuesOf(inside));
  const objects = [...jsonObjectsIn(text.slice(0, MAX_SEARCHED_CHARS))].map(({ value }) => value);
  const list = valuesOf(text.slice(text.indexOf('['), text.lastIndexOf(']') + 1));
  const isListFirst = /^[^{[]*\[/.test(text);
  const found = isListFirst ? [...fenced, ...list, ...objects] : [...fenced, ...objects, ...list];
  return found.slice(0, MAX_CANDIDATES);
}

/** The value of a JSON text, or none. */
function valuesOf(json: string): readonly unknown[] {
  if (holdsManyValues(json)) return [];
  try {
    return [JSON.parse(json) as unknown];
  } catch {
    return [];
  }
}

/** Code fences of Markdown. */
const FENCE = /^```\w*\n([^]*?)\n?```/gm;

/** Most values of an answer that are tried. */
const MAX_CANDIDATES = 8;

/** A field of an object, in any case. */
export function fieldIn(object: object, name: string): unknown {
  return Object.entries(object).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** A text or a list of lines; missing text counts as empty. Null for anything else. */
export function textOf(given: unknown): string | null {
  if (given === undefined || given === null) return '';
  if (typeof given === 'string') return given.toWellFormed();
  return isList(given) && given.every((line) => typeof line === 'string') ? given.join('\n').toWellFormed() : null;
}

type Found = Pick<FoundObject, 'json' | 'value'>;

/** The object in an object that has one key, such as `{"result": {"score": 9}}`. */
function onlyObjectIn({ json, value }: Found): readonly Found[] {
  const [[key, inner] = [], ...others] = Object.entries(value);
  if (key === undefined || !/^[a-z]\w*$/i.test(key) || !isRecord(inner) || others.length > 0) return [];
  const end = json.lastIndexOf('}', json.lastIndexOf('}') - 1) + 1;
  const innerJson = json.slice(json.indexOf('{', json.indexOf(':')), end);
  const parsed = parseObject(innerJson);
  return parsed === null ? [] : [{ json: innerJson, value: parsed }];
}

/** The keys of the outermost object of a valid JSON text, in lower case. */
function outermostKeys(json: string): readonly string[] {
  const keys: string[] = [];
  let depth = 0;
  for (const [token, name] of json.matchAll(NAMES_AND_BRACKETS)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && name !== undefined) keys.push(String(JSON.parse(name)).toLowerCase());
  }
  return keys;
}

/** Brackets and strings, captured if a colon follows. Linear: no two quantifiers match the same character. */
const NAMES_AND_BRACKETS = /("[^"\\]*(?:\\.[^"\\]*)*")(?=\s*:)|"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;

/** Longest answer that is read as one object, in UTF-16 units. */
const MAX_PARSED_CHARS = 2 * 1024 * 1024;

/** Length of an answer that is searched for objects, in UTF-16 units. */
const MAX_SEARCHED_CHARS = 512 * 1024;
