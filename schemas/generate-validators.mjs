/**
 * Compiles the schemas of recorded events and of requests to plain functions, so that the service does not load the
 * compiler. The build writes them to dist/src/generated; generate-types.mjs writes their types.
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
  secretEvents: 'secret-events.json',
  webhookEvents: 'webhook-events.json',
  webhookListEvents: 'webhook-list-events.json',
  deliveryEvents: 'delivery-events.json',
  ledgerEvents: 'ledger-events.json',
  checkpointEvents: 'checkpoint-events.json',
};

const here = new URL('.', import.meta.url);
const files = readdirSync(here).filter((name) => name.endsWith('.json'));

/** Requests with long lists. */
const LONG = [
  ...['blueprint-create.json', 'blueprint-update.json', 'try-request.json'],
  ...['chat-request.json', 'response-request.json'],
];

/** Files of requests, by the module of their validators. */
export const REQUESTS = {
  requests: ['state-override.json', ...files.filter((name) => /-(call|query|request)\.json$/.test(name))].filter(
    (name) => !LONG.includes(name),
  ),
  'long-requests': LONG,
};

/** The generated modules, by name in src/generated. Requests with long lists report only the first broken rule. */
export const VALIDATORS = {
  'recorded-events': eventValidators,
  requests: () => requestValidators(REQUESTS['requests'], { allErrors: true }),
  'long-requests': () => requestValidators(REQUESTS['long-requests'], { allErrors: false }),
};

/** Options of every compiler. Formats are annotations, as in draft 2020-12; a test validates the schemas. */
const COMPILER = {
  allowUnionTypes: true,
  validateFormats: false,
  validateSchema: false,
  code: { source: true, esm: true },
};

/** A validator for each type of event. */
function eventValidators() {
  const documents = new Map(files.map((name) => [name, shapeOf(documentIn(name))]));
  const groups = Object.entries(EVENT_FILES).map(([name, file]) => ({
    name,
    file,
    types: Object.keys(documents.get(file).properties),
  }));
  const refs = groups.flatMap(({ file, types }) => types.map((type) => [type, `${file}#/properties/${type}`]));
  const exported = groups.map(({ name, types }) => `export const ${name} = { ${types.join(', ')} };`);
  return [compiled(refs, documents, {}), ...exported, ''].join('\n');
}

/** A validator for each of the files named. */
function requestValidators(names, options) {
  const documents = new Map(files.map((name) => [name, documentIn(name)]));
  const titles = names.map((name) => [documents.get(name).title, name]);
  // ownProperties: inherited names would count as present.
  const code = compiled(titles, documents, { ...options, strict: true, ownProperties: true });
  const validators = titles.map(([title, name]) => `'${name}': ${title}`);
  return [code, `export const validators = { ${validators.join(', ')} };`, ''].join('\n');
}

/** Source text of a module that exports a validator for each reference, by its name. */
function compiled(refs, documents, options) {
  const ajv = new Ajv2020({ ...COMPILER, ...options });
  ajv.addKeyword('x-data-by-type');
  for (const [name, document] of documents) ajv.addSchema(document, name);
  return withImports(standalone.default(ajv, Object.fromEntries(refs)));
}

/** Replaces `require` of the compiler's runtime functions by imports: a native module has no `require`. */
function withImports(code) {
  const imported = new Map();
  const named = code.replace(/require\("([^"]+)"\)/g, (_, path) => {
    if (!imported.has(path)) imported.set(path, `runtime${imported.size}`);
    return imported.get(path);
  });
  return [...[...imported].map(([path, name]) => `import ${name} from '${path}.js';`), named].join('\n');
}

function documentIn(name) {
  return JSON.parse(readFileSync(new URL(name, here), 'utf8'));
}

/**
 * Keywords that do not belong to the shape. Limits apply to requests only: they may change, and events that were recorded
 * under other limits stay valid. An unknown field is no fault: a newer instance may have recorded it.
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
    // Without limits, several may match.
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
