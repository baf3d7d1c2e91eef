/** The JSON Schemas of the folder schemas/, read once: as documents for OpenAPI, compiled for what comes in. */
import { readdirSync, readFileSync } from 'node:fs';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schemas as SchemaTypes } from '../generated/schemas.js';

/** Name of a file in schemas/. */
export type SchemaName = keyof SchemaTypes;

/** What a schema of this folder describes. */
export type Described<N extends SchemaName> = SchemaTypes[N];

/** A schema as it is written, with the keywords read here. */
export interface JsonSchema {
  readonly title?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly 'x-data-by-type'?: DataByType;
  readonly [keyword: string]: unknown;
}

/**
 * For a record with a `type` and its `data`: another schema describes the data of each type. OpenAPI and AsyncAPI show it
 * as a union over the types; it is not enforced.
 */
export interface DataByType {
  /** Name of a file in schemas/ whose properties are the data, by type. */
  readonly facts: string;
  /** What the title of a member of the union has behind the type. */
  readonly suffix: string;
}

export interface SchemaRegistry {
  /** @param name of a file in schemas/ */
  document(name: string): JsonSchema;
  /**
   * Compiled on first use.
   *
   * @param reports every broken rule (default): fit for small flat bodies and queries; for long lists only the first
   */
  validator<N extends SchemaName>(name: N, reports?: 'all' | 'first'): ValidateFunction<Described<N>>;
}

/** From dist/src/api, where this file runs. */
const FOLDER = new URL('../../../schemas/', import.meta.url);

let opened: SchemaRegistry | null = null;

/** Every schema of the folder, read and compiled once per process. */
export function openSchemas(): SchemaRegistry {
  return (opened ??= readSchemas());
}

function readSchemas(): SchemaRegistry {
  const documents = new Map<string, JsonSchema>();
  // ownProperties: inherited names would count as present. Formats are annotations, as draft 2020-12 has them.
  // validateSchema: a test holds the schemas to the draft, a start need not.
  const options = {
    strict: true,
    allowUnionTypes: true,
    ownProperties: true,
    validateFormats: false,
    validateSchema: false,
  };
  const compilers = { all: new Ajv2020({ ...options, allErrors: true }), first: new Ajv2020(options) };
  for (const compiler of Object.values(compilers)) compiler.addKeyword('x-data-by-type');
  for (const name of readdirSync(FOLDER).filter((each) => each.endsWith('.json'))) {
    const document = readRecord(new URL(name, FOLDER));
    documents.set(name, document);
    compilers.all.addSchema(document, name);
    compilers.first.addSchema(document, name);
  }
  return {
    document: (name) => found(documents.get(name), name),
    validator: <N extends SchemaName>(name: N, reports: 'all' | 'first' = 'all') =>
      found(compilers[reports].getSchema<Described<N>>(name), name),
  };
}

/** Reads a JSON file that holds a record: a schema of ours, or the package's own. */
export function readRecord(file: URL): JsonSchema {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (isRecord(value)) return value;
  throw new Error(`Cannot read ${file.pathname}: it holds no JSON object`);
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`Cannot find the schema "${name}" in ${FOLDER.pathname}`);
  return value;
}
