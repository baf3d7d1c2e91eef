/** The JSON Schemas of the folder schemas/: as documents for OpenAPI, and compiled into validators of requests. */
import { readFileSync } from 'node:fs';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { validators as longRequests } from '../generated/long-requests.js';
import { validators as requests } from '../generated/requests.js';
import type { Schemas as SchemaTypes } from '../generated/schemas.js';
import { isRecord } from '../system/untrusted.js';

/** Name of a file in schemas/. */
export type SchemaName = keyof SchemaTypes;

/** Name of the schema of a request's body, a part of it, or its query. */
export type RequestName = keyof typeof requests | keyof typeof longRequests;

/** The type that a schema describes. */
export type Described<N extends SchemaName> = SchemaTypes[N];

/** A schema document, with the keywords that the service reads. */
export interface JsonSchema {
  readonly title?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly 'x-data-by-type'?: DataByType;
  readonly [keyword: string]: unknown;
}

/**
 * For a record with `type` and `data`: another schema describes the data of each type. OpenAPI and AsyncAPI show the
 * record as a union over the types; validators do not enforce it.
 */
export interface DataByType {
  /** Name of a file in schemas/ whose properties describe the data, by type. */
  readonly facts: string;
  /** The title of a union's member is its type with this suffix. */
  readonly suffix: string;
}

export interface SchemaRegistry {
  /** @param name of a file in schemas/, from that folder */
  document(name: string): JsonSchema;
  /** The validator reports every broken rule of small flat bodies and queries, but only the first of long lists. */
  validator<N extends RequestName>(name: N): ValidateFunction<Described<N>>;
}

/** Relative to dist/src/api, where this file runs. */
const FOLDER = new URL('../../../schemas/', import.meta.url);

/** Compiled by the build (schemas/generate-validators.mjs): at the start the compiler would take a tenth of its time. */
const VALIDATORS: { readonly [N in RequestName]: ValidateFunction<Described<N>> } = { ...requests, ...longRequests };

let opened: SchemaRegistry | null = null;

/** The schemas of the folder; each is read once per process, when it is first used. */
export function openSchemas(): SchemaRegistry {
  return (opened ??= readSchemas());
}

function readSchemas(): SchemaRegistry {
  const documents = new Map<string, JsonSchema>();
  return {
    document(name) {
      const document = documents.get(name) ?? readRecord(new URL(name, FOLDER));
      documents.set(name, document);
      return document;
    },
    validator: (name) => VALIDATORS[name],
  };
}

/** Reads a JSON file that holds an object: a schema or package.json. */
export function readRecord(file: URL): JsonSchema {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (isRecord(value)) return value;
  throw new Error(`Cannot read ${file.pathname}: it holds no JSON object`);
}
