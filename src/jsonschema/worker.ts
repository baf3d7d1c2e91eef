/** The thread that checks schemas of clients, and values by them. */
import { parentPort } from 'node:worker_threads';
import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { isRecord, reasonOf } from '../system/untrusted.js';
import type { JsonSchema, SchemaTask } from './schema-checker.js';

/** Most errors of a value. */
const MAX_ERRORS = 10;
/** Validators that are kept, by the text of their schemas. */
const MAX_KEPT = 20;

const kept = new Map<string, ValidateFunction>();

parentPort?.on('message', ({ schema, ...task }: SchemaTask) => {
  parentPort?.postMessage('value' in task ? errorsOf(schema, task.value) : faultsOf(schema));
});
parentPort?.postMessage('ready');

/** Why a schema cannot be used: at most one reason. */
function faultsOf(schema: JsonSchema): readonly string[] {
  try {
    if ('$async' in schema) return ['it is asynchronous'];
    const reference = foreignReference(schema);
    if (reference !== null) return [`it refers to ${JSON.stringify(reference)}: only references to itself are allowed`];
    const validate = compiled(schema);
    // A validator or a pattern that never ends shows itself here, and the thread is ended.
    for (const value of [null, 0, '', [], {}, [[]], [{}]]) validate(value);
    for (const pattern of patternsIn(schema)) tryPattern(pattern);
    return [];
  } catch (error) {
    return [reasonOf(error)];
  }
}

function errorsOf(schema: JsonSchema, value: unknown): readonly string[] {
  const validate = compiled(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).slice(0, MAX_ERRORS).map(errorText);
}

function errorText({ instancePath, message = 'is not valid', params }: ErrorObject): string {
  const { allowedValues: allowed, additionalProperty: extra } = params as Readonly<Record<string, unknown>>;
  const detail = Array.isArray(allowed) ? `: ${JSON.stringify(allowed).slice(0, 300)}` : '';
  const named = typeof extra === 'string' ? `: ${JSON.stringify(extra.slice(0, 100))}` : '';
  return `${instancePath === '' ? 'The value' : instancePath} ${message}${detail}${named}`;
}

function compiled(schema: JsonSchema): ValidateFunction {
  const text = JSON.stringify(schema);
  const known = kept.get(text);
  if (known !== undefined) return known;
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, ownProperties: true, logger: false });
  formats.default(ajv);
  const { $schema: draft, ...rest } = schema;
  // Programs name the draft by which they wrote a schema; it is read by that of 2020.
  const read = draft === undefined || (typeof draft === 'string' && DRAFTS.test(draft)) ? rest : schema;
  // Ajv's own error names no place.
  if (ajv.validateSchema(read) !== true) throw new Error(ajv.errors?.map(errorText)[0]);
  const validate = ajv.compile(read);
  const [oldest] = kept.keys();
  if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest);
  kept.set(text, validate);
  return validate;
}

/** The names of the drafts of JSON Schema. */
const DRAFTS = /^https?:\/\/json-schema\.org\//;

/** The first reference to another document, or one that depends on where it is met; or null. */
function foreignReference(schema: unknown): string | null {
  for (const [key, value] of keywordsIn(schema)) {
    if (typeof value !== 'string') continue;
    if (key === '$dynamicRef' || (key === '$ref' && !value.startsWith('#'))) return value;
  }
  return null;
}

function patternsIn(schema: unknown): readonly string[] {
  return keywordsIn(schema).flatMap(([key, value]) => {
    if (key === 'pattern' && typeof value === 'string') return [value];
    return key === 'patternProperties' && isRecord(value) ? Object.keys(value) : [];
  });
}

/** The keywords of a schema and of those in it, with their values. */
function keywordsIn(schema: unknown): readonly (readonly [string, unknown])[] {
  return fieldsOf(schema).flatMap((keyword) => {
    const [key, value] = keyword;
    if (DATA.has(key)) return [];
    const inner = BY_NAME.has(key) ? fieldsOf(value).map(([, each]) => each) : [value];
    return [keyword, ...inner.flatMap(keywordsIn)];
  });
}

function fieldsOf(value: unknown): readonly (readonly [string, unknown])[] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** Keywords whose values are data, whatever stands in them, and those that hold schemas by names of any kind. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
const BY_NAME: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);

/** Matches long repetitions of the characters of a pattern, which an exponential one does in more than a second. */
function tryPattern(pattern: string): void {
  const match = new RegExp(pattern, 'u');
  const letters = pattern.replace(/\\./g, '').match(/[\p{L}\p{N}]/gu) ?? [];
  const signs = [...new Set([...letters, 'a', 'A', '0', ' ', '-', '_', '.', '@', '/'])].slice(0, 50);
  const pairs = signs.slice(0, 10).flatMap((first) => signs.slice(0, 10).map((second) => first + second));
  for (const sign of [...signs, ...pairs]) match.test(`${sign.repeat(REPETITIONS)}\u0000`);
}

const REPETITIONS = 40;
