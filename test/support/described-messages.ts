/** Checks messages of sockets and streams against the service's AsyncAPI document. */
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { Ajv2020 } from 'ajv/dist/2020.js';

/** Throws unless a message matches exactly one message of its channel in the document. */
export type Described = (channel: string, message: unknown) => void;

type Json = Record<string, unknown>;

export function describedIn(document: unknown): Described {
  const validators = new Map<string, ValidateFunction>();
  const validatorOf = (channel: string): ValidateFunction => {
    const payloads = Object.values(record(partAt(document, `/channels/${channel}/messages`))).map((ref) => {
      const { payload } = record(partAt(document, String(record(ref)['$ref']).slice(1)));
      return { $ref: `document${String(record(payload)['$ref'])}` };
    });
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(record(document), 'document');
    return ajv.compile({ oneOf: payloads });
  };
  return (channel, message) => {
    const validate = validators.get(channel) ?? validatorOf(channel);
    validators.set(channel, validate);
    if (!validate(message)) throw new Error(`${JSON.stringify(message)}: ${JSON.stringify(validate.errors)}`);
  };
}

/** The part of a document at a JSON Pointer. */
export function partAt(document: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .reduce<unknown>((part, name) => record(part)[name], document);
}

export function record(value: unknown): Json {
  if (typeof value !== 'object' || value === null) throw new Error(`No object: ${String(value)}`);
  return Object.fromEntries(Object.entries(value));
}
