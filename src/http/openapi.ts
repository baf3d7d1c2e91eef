/** The OpenAPI document: made from the routes that are served and the schemas that are enforced. */
import { STATUS_CODES } from 'node:http';
import { headerObjects } from './answer-headers.js';
import { IDEMPOTENCY_KEY, KEY_PATTERN } from './idempotency.js';
import type { Route, Success } from './route.js';
import type { JsonSchema, SchemaShelf } from './schema.js';
import { readRecord } from './schema.js';

/** GET /api/openapi.json, which describes itself too. */
export function openApiRoute(others: readonly Route[], schemas: SchemaShelf): Route {
  const route: Route = {
    method: 'GET',
    path: '/api/openapi.json',
    name: 'getOpenApi',
    summary: 'This document',
    tag: 'documentation',
    success: { status: 200, description: 'OpenAPI 3.1', schema: null },
    handle: async () => ({ status: 200, body: document }),
  };
  const document = openApiDocument([...others, route], schemas);
  return route;
}

type Json = Readonly<Record<string, unknown>>;

function openApiDocument(routes: readonly Route[], schemas: SchemaShelf): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const item = (paths[route.path] ??= {});
    item[route.method.toLowerCase()] = operation(route, schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Council Run Service',
      version: serviceVersion(),
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas: components(routes, schemas) },
  };
}

const DESCRIPTION =
  'Runs councils of language-model agents on a text. A start answers at once; the run is followed by polling or at ' +
  'the WebSocket `/ws/council/{run_id}`. Every path is served with and without its trailing slash, GET answers HEAD ' +
  'too. Every error body has a string `detail`; 422 lists the broken rules in `errors`. In a JSON body null counts as absent, but for keys inside `modified_state`. JSON bodies hold at most 1 MiB, blueprints 256 KiB, uploaded files 50 MiB.';

function operation(route: Route, schemas: SchemaShelf): Json {
  const { success, otherSuccess, body } = route;
  const problems = problemStatuses(route).map((status) => [
    status,
    { ...problem(STATUS_CODES[status] ?? 'Problem', schemas), ...(status === 503 && TRY_AGAIN) },
  ]);
  return {
    operationId: route.name,
    summary: route.summary,
    tags: [route.tag],
    parameters: parameters(route, schemas),
    ...(body && { requestBody: requestBody(body, schemas) }),
    responses: {
      ...answered(success, route, schemas),
      ...(otherSuccess && answered(otherSuccess, route, schemas)),
      ...(route.nothing !== undefined && { 204: { description: route.nothing } }),
      ...(route.isConditional === true && {
        304: { description: 'Nothing has come since the ETag that was sent', headers: headerObjects(['ETag']) },
      }),
      ...Object.fromEntries(problems),
      default: problem('Any other problem', schemas),
    },
  };
}

function requestBody({ schema, isRequired, mediaType }: NonNullable<Route['body']>, schemas: SchemaShelf): Json {
  const content = json(refTo(schema, schemas), mediaType);
  return { required: isRequired, content };
}

function answered(success: Success, { isConditional = false }: Route, schemas: SchemaShelf): Json {
  const { status, description, headers = [] } = success;
  const content = { ...contentOf(success, schemas), ...otherContent(success) };
  const named = headerObjects(isConditional ? [...headers, 'ETag'] : headers);
  const withHeaders = Object.keys(named).length > 0 && { headers: named };
  return { [status]: { description, ...withHeaders, ...(status !== 204 && { content }) } };
}

/** Every 503 says when to come back. */
const TRY_AGAIN: Json = { headers: headerObjects(['Retry-After']) };

function contentOf({ schema, mediaType }: Success, schemas: SchemaShelf): Json {
  if (mediaType !== undefined) return { [mediaType]: { schema: { type: 'string' } } };
  return json(schema === null ? { type: 'object' } : refTo(schema, schemas));
}

/** What can go wrong follows from what a route takes. */
function problemStatuses(route: Route): readonly number[] {
  const { method, path, body, query, isKeyed = false, hasUnknown = path.includes('{'), problems = [] } = route;
  const statuses = new Set(problems).add(421);
  if (method !== 'GET') statuses.add(403);
  if (hasUnknown) statuses.add(404);
  if (isKeyed) statuses.add(409);
  if (body !== undefined) statuses.add(413).add(415);
  if (body !== undefined || query !== undefined || isKeyed) statuses.add(422);
  return [...statuses].sort((a, b) => a - b);
}

function problem(description: string, schemas: SchemaShelf): Json {
  return { description, content: json(refTo('problem.json', schemas)) };
}

function json(schema: Json, mediaType = 'application/json'): Json {
  return { [mediaType]: { schema } };
}

function otherContent({ alsoAs = {} }: Success): Json {
  return Object.fromEntries(
    Object.entries(alsoAs).map(([type, description]) => [type, { schema: { type: 'string', description } }]),
  );
}

function parameters({ path, query, isKeyed, isConditional, header }: Route, schemas: SchemaShelf): readonly Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const properties = query === undefined ? {} : (schemas.document(query.schema).properties ?? {});
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema }));
  return [
    ...inPath,
    ...inQuery,
    ...(isKeyed === true ? [KEY_PARAMETER] : []),
    ...(header === undefined ? [] : [header]),
    ...(isConditional === true ? [TAG_PARAMETER] : []),
  ];
}

const KEY_PARAMETER: Json = {
  name: IDEMPOTENCY_KEY,
  in: 'header',
  required: false,
  description: 'The same key with the same body gets the same answer and has no second effect; with another body, 409.',
  schema: { type: 'string', pattern: KEY_PATTERN },
};

const TAG_PARAMETER: Json = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'ETags of earlier answers: 304 when one of them is still that of the answer.',
  schema: { type: 'string' },
};

/** The schemas the routes name and those that these refer to, under their titles. */
function components(routes: readonly Route[], schemas: SchemaShelf): Json {
  const names = new Set<string>(['problem.json']);
  for (const { body, success, otherSuccess } of routes) {
    for (const each of [body, success, otherSuccess]) if (each?.schema) names.add(each.schema);
  }
  const found: Record<string, unknown> = {};
  // The set grows while it is walked, until every schema referred to is in.
  for (const name of names) {
    found[titleOf(name, schemas)] = withRefs(partOf(schemas.document(name)), (ref) => {
      const [file = '', pointer = ''] = ref.split('#');
      if (file !== '') names.add(file);
      return pointerTo(file === '' ? name : file, schemas) + pointer;
    });
  }
  return found;
}

/** A schema as a part of another document: an address of its own would capture the references in it. */
function partOf(schema: JsonSchema): Json {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => keyword !== '$id' && keyword !== '$schema'));
}

/** A schema with every `$ref` in it replaced. */
function withRefs(value: unknown, replaced: (ref: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => withRefs(each, replaced));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]: [string, unknown]) => [
      key,
      key === '$ref' && typeof member === 'string' ? replaced(member) : withRefs(member, replaced),
    ]),
  );
}

function refTo(name: string, schemas: SchemaShelf): Json {
  return { $ref: pointerTo(name, schemas) };
}

function pointerTo(name: string, schemas: SchemaShelf): string {
  return `#/components/schemas/${titleOf(name, schemas)}`;
}

function titleOf(name: string, schemas: SchemaShelf): string {
  return schemas.document(name).title ?? name;
}

function serviceVersion(): string {
  const { version } = readRecord(new URL('../../../package.json', import.meta.url));
  return String(version);
}
