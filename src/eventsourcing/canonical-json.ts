/** One text per JSON value: RFC 8785 (JSON Canonicalization Scheme), over which the hash chain is computed. */

/** Deepest nesting of arrays and objects accepted; deeper values could exhaust the stack of a reader. */
const MAX_DEPTH = 512;

/**
 * The canonical JSON text of a value (RFC 8785): no white space, members sorted by the UTF-16 code units of their
 * names, numbers and strings as ECMAScript writes them. Equal JSON values have equal texts.
 *
 * @throws {TypeError} for what JSON cannot hold: undefined (as a member too), bigint, function, symbol, a number that
 *   is not finite, a string with an unpaired surrogate, a class instance, nesting deeper than 512
 */
export function canonical(value: unknown): string {
  return textOf(value, 0);
}

function textOf(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw new TypeError('No canonical JSON for a string with an unpaired surrogate');
      return JSON.stringify(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`No canonical JSON for the number ${value}`);
      return String(value);
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_DEPTH) throw new TypeError(`No canonical JSON for nesting deeper than ${MAX_DEPTH}`);
      if (Array.isArray(value)) return `[${Array.from(value, (item) => textOf(item, depth + 1)).join(',')}]`;
      if (isPlain(value)) return textOfObject(value, depth);
      throw new TypeError('No canonical JSON for a class instance');
    default:
      throw new TypeError(`No canonical JSON for ${typeof value}`);
  }
}

function textOfObject(object: Readonly<Record<string, unknown>>, depth: number): string {
  const members = Object.keys(object)
    .sort()
    .map((name) => `${textOf(name, depth)}:${textOf(object[name], depth + 1)}`);
  return `{${members.join(',')}}`;
}

function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
