/** The OpenAPI document, generated from the routes and the schemas. */
import { STATUS_CODES } from 'node:http';
import type { AnswerHeader } from './answer.js';
import { headerObjects } from './answer.js';
import type { Json } from './components.js';
import { Components } from './components.js';
import { IDEMPOTENCY_KEY, KEY_PATTERN } from './starts.js';
import type { ProblemForm } from '../api/problem-form.js';
import { problemFormAt } from '../api/problem-form.js';
import type { HttpContext, Route, Success } from './route.js';
import { TAGS, isEventStream } from './route.js';
import { SESSION_COOKIE, scopesOf } from '../api/access/authentication.js';
import type { SchemaName, SchemaRegistry } from '../api/schemas.js';
import { readRecord } from '../api/schemas.js';

type FormedSchemas = Pick<HttpContext, 'schemas' | 'problemForms' | 'basePath'>;

/** GET /api/openapi.json, which the document describes too. */
export function openApiRoute(others: readonly Route[], http: FormedSchemas): Route {
  const route: Route = {
    method: 'GET',
    path: '/api/openapi.json',
    access: 'key',
    name: 'getOpenApi',
    summary: 'Returns this document',
    tag: 'documentation',
    success: { status: 200, description: 'OpenAPI 3.1', schema: null },
    handle: async () => ({
      status: 200,
      body: (document ??= openApiDocument([...others, route], http)),
    }),
  };
  // Generated at the first request, so that the start does not wait for it.
  let document: Json | null = null;
  return route;
}

/** The title and version of the service, for OpenAPI and AsyncAPI. */
export function serviceInfo(): Json {
  const { version } = readRecord(new URL('../../../package.json', import.meta.url));
  return { title: 'Council Run Service', version };
}

const DESCRIPTION =
  'Runs councils of language-model agents on a topic. A start is answered at once; clients follow the run by polling, by ' +
  'server-sent events or at the WebSocket `/ws/council/{run_id}`, which `/api/asyncapi.json` describes. Every path works ' +
  'with and without a trailing slash, and HEAD wherever GET works. Every error body has a string `detail`, but for errors of the protocol at `/mcp`; 422 lists the ' +
  'broken rules in `errors`. In a JSON body null counts as absent, except for keys inside `modified_state`. Limits: 1 MiB ' +
  'for a JSON body, 256 KiB for a blueprint, 1 KiB for a sign-in, 50 MiB for an uploaded file.';

function openApiDocument(routes: readonly Route[], { schemas, problemForms, basePath }: FormedSchemas): Json {
  const components = new Components(schemas, (propertyName, mapping) => ({ propertyName, mapping }));
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const item = (paths[route.path.replace(/\/$/, '').replace('{+', '{')] ??= {});
    item[route.method.toLowerCase()] = operation(route, {
      schemas,
      components,
      form: problemFormAt(route.path, problemForms),
    });
  }
  return {
    openapi: '3.1.0',
    info: { ...serviceInfo(), description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    security: [],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, schemas: components.all() },
  };
}

const SECURITY_SCHEMES: Json = {
  key: {
    type: 'http',
    scheme: 'bearer',
    description: 'A key. The service needs none until the first key is added.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The cookie of `POST /api/session`. With it, a request that changes data must have this service as its Origin.',
  },
  ticket: {
    type: 'apiKey',
    in: 'query',
    name: 'ticket',
    description: 'The ticket of `POST /api/tickets`: opens one event stream or socket within 30 seconds.',
  },
};

/** The credentials that a route accepts, each with the required scope. */
function security(route: Route): readonly Json[] {
  const { access } = route;
  if (access === 'open') return [];
  const schemes = isEventStream(route) ? ['key', 'session', 'ticket'] : ['key', 'session'];
  const scopes = scopesOf(access);
  const roles = scopes.length === 0 ? [[]] : scopes.map((scope) => [scope]);
  return roles.flatMap((each) => schemes.map((scheme) => ({ [scheme]: each })));
}

interface DocumentDeps {
  /** The form of the route's errors, or undefined if it is that of this service. */
  readonly form: ProblemForm | undefined;
  readonly schemas: SchemaRegistry;
  readonly components: Components;
}

function operation(route: Route, deps: DocumentDeps): Json {
  const { components } = deps;
  const { success, otherSuccess, errors = [], body, description } = route;
  const limited: readonly AnswerHeader[] = route.isProbe === true ? [] : ['RateLimit', 'RateLimit-Policy'];
  const tagged: readonly AnswerHeader[] = route.isConditional === true ? ['ETag', ...limited] : limited;
  const statuses = new Set(problemStatuses(route).map((status) => deps.form?.statusOf(status) ?? status));
  const problems = [...statuses].map((status) => {
    const headers = [...(PROBLEM_HEADERS[status] ?? []), ...limited];
    return [status, problem(STATUS_CODES[status] ?? 'Problem', deps, headers)];
  });
  const unchanged = { description: 'Nothing has changed since the sent ETag', ...withHeaders(tagged) };
  return {
    operationId: route.name,
    summary: route.summary,
    ...(description !== undefined && { description }),
    tags: [route.tag],
    security: security(route),
    parameters: parameters(route, deps),
    ...(body && { requestBody: requestBody(body, components) }),
    responses: {
      ...answered(success, components, tagged),
      ...(otherSuccess && answered(otherSuccess, components, tagged)),
      ...Object.fromEntries(errors.flatMap((error) => Object.entries(answered(error, components, limited)))),
      ...(route.nothing !== undefined && { 204: { description: route.nothing } }),
      ...(route.isConditional === true && { 304: unchanged }),
      ...Object.fromEntries(problems),
      default: problem('Any other problem', deps),
    },
  };
}

function requestBody({ schema, isRequired, mediaType }: NonNullable<Route['body']>, components: Components): Json {
  return { required: isRequired, content: { [mediaType ?? JSON_TYPE]: { schema: components.schemaOf(schema) } } };
}

function answered(success: Success, components: Components, always: readonly AnswerHeader[]): Json {
  const { status, description, headers = [] } = success;
  const content = status === 204 || success.isEmpty === true ? {} : { content: contentOf(success, components) };
  return { [status]: { description, ...withHeaders([...always, ...headers]), ...content } };
}

function contentOf({ schema, mediaType, alsoAs = {} }: Success, components: Components): Json {
  const anything = mediaType === undefined ? ANY_OBJECT : TEXT;
  const main: [string, Json] = [
    mediaType ?? JSON_TYPE,
    { schema: schema === null ? anything : components.schemaOf(schema) },
  ];
  const others = Object.entries(alsoAs).map(([type, { description, each }]): [string, Json] => [
    type,
    { schema: each === undefined ? { ...TEXT, description } : { ...components.schemaOf(each), description } },
  ]);
  return Object.fromEntries([main, ...others]);
}

const PROBLEM_HEADERS: Readonly<Record<number, readonly AnswerHeader[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

const JSON_TYPE = 'application/json';
const ANY_OBJECT: Json = { type: 'object', additionalProperties: true };
const TEXT: Json = { type: 'string' };

function problem(description: string, deps: DocumentDeps, headers: readonly AnswerHeader[] = []): Json {
  const schema = deps.components.schemaOf(deps.form?.schema ?? 'problem.json');
  return { description, ...withHeaders(headers), content: { [JSON_TYPE]: { schema } } };
}

function queryParameters(
  schema: SchemaName,
  { schemas, components }: Pick<DocumentDeps, 'schemas' | 'components'>,
): readonly Json[] {
  const { properties = {}, required } = schemas.document(schema);
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: 'query',
    // The schema also requires parameters with a default, because a parsed query has them.
    required: Array.isArray(required) && required.includes(name) && rest.default === undefined,
    description,
    schema: components.place(rest, schema),
  }));
}

function parameters({ path, query, isKeyed, isConditional, header }: Route, deps: DocumentDeps): readonly Json[] {
  const inPath = [...path.matchAll(/\{\+?(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: name.endsWith('_id') ? `The id of the ${name.replace(/_id$/, '')}.` : `The ${name}.`,
    schema: TEXT,
  }));
  const inQuery = query === undefined ? [] : queryParameters(query.schema, deps);
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
  description: 'The same key with the same body gets the same answer and takes effect once; with another body, 409.',
  schema: { type: 'string', pattern: KEY_PATTERN },
};

const TAG_PARAMETER: Json = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'ETags of earlier answers. If one of them is current, the answer is 304.',
  schema: { type: 'string' },
};

function withHeaders(names: readonly AnswerHeader[]): Json {
  return names.length === 0 ? {} : { headers: headerObjects(names) };
}

/** The statuses of a route's problems: its own, and those that follow from its parameters. */
function problemStatuses(route: Route): readonly number[] {
  const { path, body, query, isKeyed = false, hasUnknown = path.includes('{'), problems = [] } = route;
  const statuses = new Set([...problems, ...accessProblems(route), ...erasedProblems(route)]);
  if (route.isProbe !== true) statuses.add(429);
  if (hasUnknown) statuses.add(404);
  if (isKeyed) statuses.add(409);
  if (body !== undefined) statuses.add(408).add(413).add(415).add(503);
  if (body !== undefined || query !== undefined || isKeyed) statuses.add(422);
  return [...statuses].sort((a, b) => a - b);
}

/** An erased run. The key of a start may be that of one. */
function erasedProblems({ path, isKeyed = false }: Route): readonly number[] {
  return isKeyed || /\{(run|response)_id\}/.test(path) ? [410] : [];
}

/** The statuses of problems before a route is reached. */
function accessProblems({ method, access, isProbe = false }: Route): readonly number[] {
  const forbidden = method === 'GET' ? [] : [403];
  // 400: a request without a Host header, or with two.
  if (access === 'open') return [isProbe ? 400 : 421, ...forbidden];
  if (scopesOf(access).length > 0) forbidden.push(403);
  // 503: the log may have to be asked for the key.
  return [421, ...forbidden, 401, 429, 503];
}
