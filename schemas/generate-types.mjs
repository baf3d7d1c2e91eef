/** Writes src/generated/schemas.d.ts: one TypeScript type for every schema in this folder, named by its title. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compile } from 'json-schema-to-typescript';

const here = fileURLToPath(new URL('.', import.meta.url));
const target = new URL('../src/generated/', import.meta.url);
const files = readdirSync(here)
  .filter((name) => name.endsWith('.json'))
  .sort();

const everything = {
  title: 'Schemas',
  type: 'object',
  additionalProperties: false,
  required: files,
  properties: Object.fromEntries(files.map((name) => [name, { $ref: name }])),
};
const types = await compile(everything, 'Schemas', {
  cwd: here,
  additionalProperties: false,
  bannerComment: '/* Generated from schemas/ by schemas/generate-types.mjs; not kept in git. */',
  unreachableDefinitions: true,
});
mkdirSync(target, { recursive: true });
writeFileSync(new URL('schemas.d.ts', target), types);
