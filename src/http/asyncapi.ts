/**
 * The AsyncAPI document: the messages of a run's WebSocket and of every event stream. schemas/channels/asyncapi.json is
 * written by hand; the service adds the title, the version and the schemas of the messages.
 */
import type { Json } from './components.js';
import { Components } from './components.js';
import { serviceInfo } from './openapi.js';
import type { HttpContext, Route } from './route.js';
import type { SchemaName } from '../api/schemas.js';
import { isRecord } from '../system/untrusted.js';

/** GET /api/asyncapi.json. */
export function asyncApiRoute(http: Pick<HttpContext, 'schemas' | 'basePath'>): Route {
  let document: Json | null = null;
  return {
    method: 'GET',
    path: '/api/asyncapi.json',
    access: 'key',
    name: 'getAsyncApi',
    summary: 'Returns the AsyncAPI document of the WebSocket channels and event streams',
    tag: 'documentation',
    success: { status: 200, description: 'AsyncAPI 3.0', schema: null },
    handle: async () => ({ status: 200, body: (document ??= asyncApiDocument(http)) }),
  };
}

/** Each describes one message, or several in `oneOf`. */
const MESSAGE_FILES: readonly SchemaName[] = [
  'channel-messages.json',
  'rich-messages.json',
  'run-event.json',
  'feed-event.json',
  'approval-change.json',
];

function asyncApiDocument({ schemas, basePath }: Pick<HttpContext, 'schemas' | 'basePath'>): Json {
  const { info, components: written, servers, ...document } = schemas.document('channels/asyncapi.json');
  // A discriminator would add nothing: every member of a union has its own constant.
  const components = new Components(schemas, () => undefined);
  for (const file of MESSAGE_FILES) {
    const schema = schemas.document(file);
    const members = Array.isArray(schema['oneOf']) ? schema['oneOf'].filter(isRecord) : [schema];
    for (const member of members) components.place(member, file);
  }
  const below = (server: unknown): Json => ({ ...recordOf(server), ...(basePath !== '' && { pathname: basePath }) });
  return {
    ...document,
    servers: Object.fromEntries(Object.entries(recordOf(servers)).map(([name, server]) => [name, below(server)])),
    info: { ...serviceInfo(), ...recordOf(info) },
    components: { ...recordOf(written), schemas: components.all() },
  };
}

function recordOf(part: unknown): Json {
  return isRecord(part) ? part : {};
}
