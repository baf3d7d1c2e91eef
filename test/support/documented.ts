/** Checks the answers of a service against its OpenAPI document. */
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Reply } from './rest-client.js';

interface Operation {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Asked {
  readonly method: string;
  /** With its query. */
  readonly path: string;
}

/** Throws if an answer differs from the document. Ignores answers that belong to no operation. */
export type Documented = (asked: Asked, reply: Reply) => void;

/** Requested once, because all services of one build have the same document. */
let known: Promise<Documented> | null = null;

/** The check of responses against the document of a service at `url`, which is read with these headers. */
export function documentedAt(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Documented> {
  known ??= read(url, headers).catch((error: unknown) => {
    known = null;
    throw error;
  });
  return known;
}

async function read(url: string, headers: Readonly<Record<string, string>>): Promise<Documented> {
  const reply = await fetch(`${url}/api/openapi.json`, { headers });
  if (reply.status !== 200) throw new Error(`The OpenAPI document is not shown: ${reply.status}`);
  const document = (await reply.json()) as Document;
  const lax = { strict: false, validateFormats: false, validateSchema: false };
  const ajv = new Ajv2020({ ...lax, code: { optimize: false } });
  ajv.addSchema(document, 'document');
  const validators = new Map<string, ValidateFunction>();
  // Fixed path parts take precedence over ids.
  const templates = Object.keys(document.paths)
    .sort((a, b) => a.split('{').length - b.split('{').length)
    .map((template) => [template, patternOf(template)] as const);

  const validatorAt = (names: readonly string[]): ValidateFunction => {
    const pointer = names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `document#${encodeURI(pointer)}` });
    validators.set(pointer, validate);
    return validate;
  };

  const operationAt = (path: string, verb: string): { template: string; responses: Operation['responses'] } | null => {
    const [bare = ''] = path.split('?');
    const [template = ''] = templates.find(([, pattern]) => pattern.test(bare)) ?? [];
    const operation = document.paths[template]?.[verb];
    return operation === undefined ? null : { template, responses: operation.responses };
  };

  return ({ method, path }, { status, headers, text }) => {
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    const operation = operationAt(path, verb);
    if (operation === null) return;
    const { template, responses } = operation;
    const exchange = `${method} ${path}, answered ${status}`;
    const key = keyOf(responses, status, exchange);
    const type = mediaTypeOf(headers);
    const { content } = responses[key] ?? {};
    if (content === undefined ? text !== '' : !(type in content))
      throw new Error(`${exchange}: "${type}" is not documented`);
    if (!type.endsWith('json') || method === 'HEAD') return;
    const validate = validatorAt(['paths', template, verb, 'responses', key, 'content', type, 'schema']);
    for (const value of valuesIn(text, type)) {
      if (!validate(value)) throw new Error(`${exchange}: ${JSON.stringify([validate.errors, value])}`);
    }
  };
}

/** Statuses for a target or headers that are too long: the service refuses them before it looks for a route. */
const TOO_LONG = 431;

/**
 * The key under which a status is documented. Only faults, and answers from before the routes, may have only `default`.
 */
function keyOf(responses: Operation['responses'], status: number, exchange: string): string {
  if (String(status) in responses) return String(status);
  if (status >= 500 || status === TOO_LONG) return 'default';
  throw new Error(`${exchange}: the status is not documented`);
}

function mediaTypeOf(headers: Headers): string {
  return headers.get('Content-Type')?.split(';')[0] ?? '';
}

/** The only value, or one a line. */
function valuesIn(text: string, type: string): readonly unknown[] {
  const texts = type === 'application/json' ? [text] : text.split('\n').slice(0, -1);
  return texts.map((each): unknown => JSON.parse(each));
}

/** Matches the paths of a template. */
function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`);
}
