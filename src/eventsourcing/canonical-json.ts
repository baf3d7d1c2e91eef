/** One text per JSON value: RFC 8785 (JSON Canonicalization Scheme), over which the hash chain is computed. */

/** Deepest nesting of arrays and objects accepted; deeper values could exhaust the stack of a reader. */
const MAX_DEPTH = 512;

/**
 * The canonical JSON text of a value (RFC 8785): no white space, members sorted by the UTF-16 code units of their
 * names, numbers and strings as ECMAScript writes them. Equal JSON values have equal texts.
 *
 * @throws {TypeError} for what JSON cannot hold: undefined (as a member too), bigint, function, symbol, a number that
 *   is not finite, a string with an unpaired surrogate, an object that is no plain one, nesting deeper than 512
 */
export function canonical(value: unknown): string {
  return textOf(value, 0);
}

/**
 * The same of an object that never changes and is written again: its text is kept as long as the object is, and found
 * where the object is a member of another.
 */
export function canonicalOnce(value: object): string {
  const text = kept.get(value) ?? canonical(value);
  kept.set(value, text);
  return text;
}

const kept = new WeakMap<object, string>();

function textOf(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return textOfString(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`No canonical JSON for the number ${value}`);
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_DEPTH) throw new TypeError(`No canonical JSON for nesting deeper than ${MAX_DEPTH}`);
      if (Array.isArray(value)) return textOfArray(value, depth);
      if (isPlain(value)) return (depth === 1 ? kept.get(value) : undefined) ?? textOfObject(value, depth);
      throw new TypeError('No canonical JSON for an object that is no plain one');
    default:
      throw new TypeError(`No canonical JSON for ${typeof value}`);
  }
}

function textOfString(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw new TypeError('No canonical JSON for a string with an unpaired surrogate');
  return JSON.stringify(text);
}

function textOfArray(items: readonly unknown[], depth: number): string {
  let text = '[';
  for (let i = 0; i < items.length; i += 1) {
    text += (i === 0 ? '' : ',') + textOf(items[i], depth + 1);
  }
  return text + ']';
}

function textOfObject(object: Readonly<Record<string, unknown>>, depth: number): string {
  let text = '{';
  for (const name of sortedNames(object)) {
    text += (text.length === 1 ? '' : ',') + (quoted.get(name) ?? quote(name)) + ':' + textOf(object[name], depth + 1);
  }
  return text + '}';
}

/** Cache of member names as JSON text: those of events are few and repeated in each. */
const quoted = new Map<string, string>();
const MAX_QUOTED = 1_000;

function quote(name: string): string {
  const text = textOfString(name);
  if (quoted.size < MAX_QUOTED && name.length <= 64) quoted.set(name, text);
  return text;
}

/** Texts that need no escaping, as names, ids and dates; testing is three times as fast as escaping. */
const PLAIN = /^[\w$:.-]{0,64}$/;

/** Longest list of names sorted in place by insertion, which below this beats the engine's sort. */
const FEW_NAMES = 16;

function sortedNames(object: object): readonly string[] {
  const names = Object.keys(object);
  if (names.length > FEW_NAMES) return names.sort();
  for (let i = 1; i < names.length; i += 1) {
    const name = names[i] ?? '';
    let slot = i;
    for (let before = names[slot - 1]; slot > 0 && before !== undefined && before > name; before = names[slot - 1]) {
      names[slot] = before;
      slot -= 1;
    }
    names[slot] = name;
  }
  return names;
}

function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
