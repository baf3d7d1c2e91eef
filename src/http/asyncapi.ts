/**
 * The AsyncAPI document: the messages of a run's WebSocket and of every event stream. schemas/channels/asyncapi.json is
 * written by hand; the service adds the title, the version and the schemas of the messages.
 */
import type { Json } from './components.js';
import { Components } from './components.js';
import { serviceInfo } from './openapi.js';
import type { Route } from './route.js';
import type { SchemaName, SchemaRegistry } from '../api/schemas.js';
import { isRecord } from '../system/untrusted.js';

/** GET /api/asyncapi.json. */
export function asyncApiRoute(schemas: SchemaRegistry): Route {
  let document: Json | null = null;
  return {
    method: 'GET',
    path: '/api/asyncapi.json',
    access: 'key',
    name: 'getAsyncApi',
    summary: 'Returns the AsyncAPI document of the WebSocket channels and event streams',
    tag: 'documentation',
    success: { status: 200, description: 'AsyncAPI 3.0', schema: null },
    handle: async () => ({ status: 200, body: (document ??= asyncApiDocument(schemas)) }),
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

function asyncApiDocument(schemas: SchemaRegistry): Json {
  const { info, components: written, ...document } = schemas.document('channels/asyncapi.json');
  // A discriminator would add nothing: every member of a union has its own constant.
  const components = new Components(schemas, () => undefined);
  for (const file of MESSAGE_FILES) {
    const schema = schemas.document(file);
    const members = Array.isArray(schema['oneOf']) ? schema['oneOf'].filter(isRecord) : [schema];
    for (const member of members) components.place(member, file);
  }
  return {
    ...document,
    info: { ...serviceInfo(), ...recordOf(info) },
    components: { ...recordOf(written), schemas: components.all() },
  };
}

function recordOf(part: unknown): Json {
  return isRecord(part) ? part : {};
}
