/** Finds JSON objects in a model's text. */
import { isRecord, jsonIn } from '../system/untrusted.js';

export interface FoundObject {
  readonly json: string;
  readonly value: object;
  /** Its place in the text, in UTF-16 units. */
  readonly begin: number;
  readonly end: number;
}

/** The outermost JSON objects in a text, in order. */
export function* jsonObjectsIn(text: string): Generator<FoundObject> {
  // A brace that can begin an object: prose and formulas use braces otherwise.
  const beginning = /\{\s*["}]/g;
  let scanned = 0;
  for (let failures = 0, objects = 0; failures < MAX_FAILURES && objects < MAX_OBJECTS && scanned < MAX_SCANNED;) {
    const begin = beginning.exec(text)?.index;
    if (begin === undefined) return;
    const end = endOfObject(text, begin);
    const json = end === null ? '' : text.slice(begin, end);
    const value = parseObject(json);
    beginning.lastIndex = value === null ? begin + 1 : begin + json.length;
    if (value === null) {
      failures += 1;
      scanned += (end ?? text.length) - begin;
      continue;
    }
    objects += 1;
    yield { json, value, begin, end: beginning.lastIndex };
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
export function parseObject(json: string): object | null {
  return parse(json) ?? parse(repaired(json));
}

function parse(json: string): object | null {
  // Most texts are prose, for which JSON.parse creates an error.
  const value = /^\s*\{/.test(json) ? jsonIn(json) : null;
  return isRecord(value) ? value : null;
}

/** JSON with raw line breaks in its strings escaped, and without commas before a closing bracket. */
function repaired(json: string): string {
  return json.replace(STRINGS_AND_COMMAS, (token) => {
    if (token.startsWith(',')) return '';
    return token.replace(/\r?\n|\r/g, '\\n').replaceAll('\t', '\\t');
  });
}

/** Strings, closed or not, and commas that only space separates from a closing bracket. Linear: a string always matches. */
const STRINGS_AND_COMMAS = /"[^"\\]*(?:\\[^][^"\\]*)*"?|,(?=\s*[}\]])/g;

/** Most braces that begin no object: each may scan the rest of the text. */
const MAX_FAILURES = 20;

/** Most UTF-16 units that are scanned after such braces; the last scan may pass it. */
const MAX_SCANNED = 1024 * 1024;

/** Most objects that are found in one text. */
const MAX_OBJECTS = 1000;
