/** The JSON Schemas of the folder schemas/: as documents for OpenAPI, compiled for what comes in. */
import { readFileSync } from 'node:fs';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { validators as longRequests } from '../generated/long-requests.js';
import { validators as requests } from '../generated/requests.js';
import type { Schemas as SchemaTypes } from '../generated/schemas.js';
import { isRecord } from '../system/untrusted.js';

/** Name of a file in schemas/. */
export type SchemaName = keyof SchemaTypes;

/** Name of the schema of what a request holds: a body, a part of one, or a query. */
export type RequestName = keyof typeof requests | keyof typeof longRequests;

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
  /** @param name of a file in schemas/, from that folder */
  document(name: string): JsonSchema;
  /** Reports every broken rule of small flat bodies and queries; of long lists only the first. */
  validator<N extends RequestName>(name: N): ValidateFunction<Described<N>>;
}

/** From dist/src/api, where this file runs. */
const FOLDER = new URL('../../../schemas/', import.meta.url);

/** Compiled by the build: the compiler would be a tenth of a start. */
const VALIDATORS: { readonly [N in RequestName]: ValidateFunction<Described<N>> } = { ...requests, ...longRequests };

let opened: SchemaRegistry | null = null;

/** Every schema of the folder, each read when it is first asked for, once per process. */
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

/** Reads a JSON file that holds a record: a schema of ours, or the package's own. */
export function readRecord(file: URL): JsonSchema {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (isRecord(value)) return value;
  throw new Error(`Cannot read ${file.pathname}: it holds no JSON object`);
}
