/** Checks values against the schemas, compiled by Ajv. Tests check answers, which the service itself does not. */
import { readdirSync } from 'node:fs';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Described, SchemaName } from '../../src/api/schemas.js';
import { readRecord } from '../../src/api/schemas.js';
import { present } from '../../src/system/element.js';

const FOLDER = new URL('../../../schemas/', import.meta.url);

const compilers = new Map<boolean, Ajv2020>();

/**
 * Whether a value matches a schema. Compiles each schema once.
 *
 * @param allErrors whether all errors are reported, or only the first
 */
export function schemaCheck<N extends SchemaName>(name: N, allErrors = true): ValidateFunction<Described<N>> {
  const compiler = compilers.get(allErrors) ?? compilerOf(allErrors);
  compilers.set(allErrors, compiler);
  return present(compiler.getSchema<Described<N>>(name), `schema "${name}"`);
}

function compilerOf(allErrors: boolean): Ajv2020 {
  const rules = { strict: true, allowUnionTypes: true, ownProperties: true };
  // Skips the optimization of the generated code, which takes a third of the time and is used only a few times.
  const quickly = { validateFormats: false, validateSchema: false, code: { optimize: false } };
  const compiler = new Ajv2020({ ...rules, ...quickly, allErrors });
  compiler.addKeyword('x-data-by-type');
  for (const name of readdirSync(FOLDER).filter((each) => each.endsWith('.json')))
    compiler.addSchema(readRecord(new URL(name, FOLDER)), name);
  return compiler;
}
