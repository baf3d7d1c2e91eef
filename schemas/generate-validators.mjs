/**
 * Compiles the schemas of recorded events to plain functions, so that a start compiles none. The build writes them to
 * dist/src/generated/recorded-events.js; their types are written by generate-types.mjs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standalone from 'ajv/dist/standalone/index.js';

/** Files of events by the name under which their validators are exported. */
export const EVENT_FILES = {
  runEvents: 'run-events.json',
  blueprintEvents: 'blueprint-events.json',
  documentEvents: 'document-events.json',
  keyEvents: 'key-events.json',
  sessionEvents: 'session-events.json',
  ticketEvents: 'ticket-events.json',
};

const here = new URL('.', import.meta.url);

/** Source text of a module with a validator for each type of event. */
export function validators() {
  const ajv = new Ajv2020({
    allowUnionTypes: true,
    validateFormats: false,
    validateSchema: false,
    code: { source: true, esm: true },
  });
  const documents = new Map(
    readdirSync(here).flatMap((name) => (name.endsWith('.json') ? [[name, shapeIn(name)]] : [])),
  );
  for (const [name, document] of documents) ajv.addSchema(document, name);
  const groups = Object.entries(EVENT_FILES).map(([name, file]) => ({
    name,
    file,
    types: Object.keys(documents.get(file).properties),
  }));
  const refs = groups.flatMap(({ file, types }) => types.map((type) => [type, `${file}#/properties/${type}`]));
  const exported = groups.map(({ name, types }) => `export const ${name} = { ${types.join(', ')} };`);
  return [standalone.default(ajv, Object.fromEntries(refs)), ...exported, ''].join('\n');
}

function shapeIn(name) {
  return shapeOf(JSON.parse(readFileSync(new URL(name, here), 'utf8')));
}

/**
 * Keywords that do not tell the shape. Limits hold where something is taken in: they may change, and what was recorded
 * under others is still valid. Nor is an unknown field a fault: a newer instance beside this one may record it.
 */
const NOT_OF_SHAPE = new Set([
  ...['title', 'description', 'default', 'examples', 'x-data-by-type', 'format', 'pattern', 'unevaluatedProperties'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minItems', 'maxItems'],
]);

function shapeOf(schema) {
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([keyword, value]) => !NOT_OF_SHAPE.has(keyword) && !(keyword === 'additionalProperties' && value === false),
  );
  return Object.fromEntries(kept.map(([keyword, value]) => shapeUnder(keyword, value)));
}

function shapeUnder(keyword, value) {
  switch (keyword) {
    case 'properties':
    case '$defs':
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shapeOf(each)]))];
    // Without the limits more than one may fit.
    case 'oneOf':
      return ['anyOf', value.map(shapeOf)];
    case 'anyOf':
    case 'allOf':
      return [keyword, value.map(shapeOf)];
    case 'items':
    case 'additionalProperties':
      return [keyword, shapeOf(value)];
    default:
      return [keyword, value];
  }
}
