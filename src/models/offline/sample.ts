/** The value that the offline model gives for a JSON Schema. */
import { fieldOf, isList, isRecord, listOf, recordOf } from '../../system/untrusted.js';

/** Depth at which the value ends, also by a schema that contains itself. */
const MAX_DEPTH = 12;
/** Parts of the value beyond which each is null: a schema that requires itself several times would grow without end. */
const MAX_PARTS = 2_000;
/** Length of its texts, constants and choices beyond which each part is null, in UTF-16 units of JSON: more is no draft. */
const MAX_UNITS = 128 * 1024;

/**
 * A value that most schemas accept: the first of the choices, the required fields, the least number of items, and the given
 * text where a text may stand. It does not know patterns.
 */
export function sampleOf(root: unknown, text: string): unknown {
  let [parts, units] = [0, 0];
  const counted = (value: unknown): unknown => {
    units += JSON.stringify(value).length;
    return value;
  };
  const sample = (schema: unknown, depth: number): unknown => {
    parts += 1;
    return depth > MAX_DEPTH || parts > MAX_PARTS || units > MAX_UNITS ? null : valueBy(schema, depth);
  };
  const valueBy = (schema: unknown, depth: number): unknown => {
    if (!isRecord(schema)) return null;
    const reference = schema['$ref'];
    if (typeof reference === 'string') return sample(targetOf(root, reference), depth + 1);
    if ('const' in schema) return counted(schema['const']);
    const [choice] = listOf(schema['enum']);
    if (choice !== undefined) return counted(choice);
    const [first] = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])];
    if (first !== undefined) return sample({ ...schema, anyOf: [], oneOf: [], ...recordOf(first) }, depth + 1);
    const all = listOf(schema['allOf']).map(recordOf);
    if (all.length > 0) return sample(merged([{ ...schema, allOf: [] }, ...all]), depth + 1);
    const [type] = [schema['type']].flat();
    switch (type ?? (isRecord(schema['properties']) ? 'object' : 'string')) {
      case 'object':
        return Object.fromEntries(
          listOf(schema['required']).map((name) => {
            const field = String(name);
            return [field, sample(fieldOf(schema['properties'], field) ?? {}, depth + 1)];
          }),
        );
      case 'array': {
        const fixed = listOf(schema['prefixItems']);
        const length = Math.max(fixed.length, numberIn(schema, 'minItems') ?? 1);
        return Array.from({ length: Math.min(length, 100) }, (_, at) =>
          sample(fixed[at] ?? schema['items'] ?? {}, depth + 1),
        );
      }
      case 'integer':
      case 'number':
        return numberFor(schema);
      case 'boolean':
        return true;
      case 'null':
        return null;
      default:
        return counted(textFor(schema, text));
    }
  };
  return sample(root, 0);
}

/** What a reference within a schema names: a JSON Pointer, or the whole. Undefined if it names nothing. */
function targetOf(root: unknown, reference: string): unknown {
  const parts = reference
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '');
  return parts.reduce<unknown>(
    (value, part) => (isRecord(value) || isList(value) ? Reflect.get(value, unescaped(part)) : undefined),
    root,
  );
}

/** A part of a pointer as a key, or as it is if its escapes are malformed, as while a user types a schema. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}

function merged(parts: readonly Readonly<Record<string, unknown>>[]): object {
  const all = Object.assign({}, ...parts) as object;
  return {
    ...all,
    properties: Object.assign({}, ...parts.map((part) => recordOf(part['properties']))) as object,
    required: [...new Set(parts.flatMap((part) => listOf(part['required'])))],
  };
}

function numberFor(schema: object): number {
  const step = numberIn(schema, 'multipleOf') ?? 1;
  const above = numberIn(schema, 'exclusiveMinimum');
  const below = numberIn(schema, 'exclusiveMaximum');
  const least = numberIn(schema, 'minimum') ?? (above === undefined ? undefined : above + step);
  const most = numberIn(schema, 'maximum') ?? (below === undefined ? undefined : below - step);
  const wanted = least ?? Math.min(most ?? 0, 0);
  return Math.ceil(wanted / step) * step;
}

const BY_FORMAT: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T00:00:00Z',
  time: '00:00:00Z',
  email: 'someone@example.org',
  uri: 'https://example.org/',
  uuid: '00000000-0000-4000-8000-000000000000',
};

function textFor(schema: object, text: string): string {
  const format = BY_FORMAT[String(fieldOf(schema, 'format'))];
  if (format !== undefined) return format;
  return text
    .slice(0, numberIn(schema, 'maxLength') ?? 200)
    .padEnd(Math.min(numberIn(schema, 'minLength') ?? 0, MAX_UNITS), '.');
}

function numberIn(schema: object, name: string): number | undefined {
  const value = fieldOf(schema, name);
  return typeof value === 'number' ? value : undefined;
}
