/** The AsyncAPI document: the messages of a run's WebSocket and of every event stream, made from their schemas. */
import type { ChannelMessage } from '../generated/schemas.js';
import type { Components, Json } from './components.js';
import { componentsOf } from './components.js';
import { SESSION_COOKIE } from '../api/authentication.js';
import { serviceInfo } from './openapi.js';
import type { Route } from './route.js';
import type { JsonSchema, SchemaName, SchemaRegistry } from '../api/schemas.js';
import { isRecord } from '../api/schemas.js';

/** GET /api/asyncapi.json. */
export function asyncApiRoute(schemas: SchemaRegistry): Route {
  let document: Json | null = null;
  return {
    method: 'GET',
    path: '/api/asyncapi.json',
    access: 'key',
    name: 'getAsyncApi',
    summary: 'Describes the WebSocket channels of a run, and the event streams of a run, of all runs and of approvals',
    tag: 'documentation',
    success: { status: 200, description: 'AsyncAPI 3.0', schema: null },
    handle: async () => ({ status: 200, body: (document ??= asyncApiDocument(schemas)) }),
  };
}

const DESCRIPTION =
  'What a run tells while it goes on, as messages of a WebSocket or as server-sent events. What is asked for by REST ' +
  'is described in `/api/openapi.json`.';

/** Messages of the default channel that the rich one sends too. */
const ALSO_RICH: ReadonlySet<string> = new Set<ChannelMessage['event']>([
  'error',
  'connected',
  'run_complete',
  'run_failed',
]);

function asyncApiDocument(schemas: SchemaRegistry): Json {
  // That every member of a union has another constant tells them apart; AsyncAPI's discriminator adds nothing.
  const components = componentsOf(schemas, () => undefined);
  const plain = messagesOf('channel-messages.json', schemas, components);
  const alsoRich = plain.filter(({ name }) => ALSO_RICH.has(name));
  const rich = [...alsoRich, ...messagesOf('rich-messages.json', schemas, components)];
  const streamed = messagesOf('run-event.json', schemas, components);
  const fed = messagesOf('feed-event.json', schemas, components);
  const changes = [
    ...messagesOf('approval.json', schemas, components),
    ...messagesOf('approval-change.json', schemas, components),
  ];
  const messages = [...plain, ...rich, ...streamed, ...fed, ...changes].map(
    (message) => [message.title, message] as const,
  );
  const asking = (query: SchemaName): Json => ({
    http: {
      method: 'GET',
      query: recordOf({ ...schemas.document(query).properties, ticket: TICKET }),
      bindingVersion: '0.3.0',
    },
  });
  return {
    asyncapi: '3.0.0',
    info: { ...serviceInfo(), description: DESCRIPTION, license: { name: 'MIT' } },
    defaultContentType: 'application/json',
    servers: { socket: server('ws'), rest: server('http') },
    channels: {
      run: channel(RUN, plain),
      runInFull: channel(RUN_IN_FULL, rich),
      runEvents: channel(RUN_EVENTS, streamed),
      feed: channel(FEED, fed),
      approvals: channel(APPROVALS, changes),
    },
    operations: {
      tellRun: operation('run', RUN),
      tellRunInFull: operation('runInFull', RUN_IN_FULL),
      streamRunEvents: operation('runEvents', RUN_EVENTS, asking('stream-query.json')),
      streamFeed: operation('feed', FEED, asking('feed-query.json')),
      streamApprovals: operation('approvals', APPROVALS, asking('approvals-stream-query.json')),
    },
    components: {
      messages: Object.fromEntries(messages),
      securitySchemes: SECURITY_SCHEMES,
      schemas: components.all(),
    },
  };
}

interface ChannelText {
  readonly title: string;
  readonly description: string;
  readonly address: string;
  readonly servers: readonly Json[];
  readonly bindings?: Json;
}

const CLOSES =
  'The service closes with 1000 after the last message, 1002 after a frame that is none, 1007 after text that is no ' +
  'UTF-8, 1009 after more than 4 KiB from the client, 1011 when the record of the run is damaged, 1012 when it stops, 1013 while the event log cannot be reached, 4401 when ' +
  'the key or session that opened it ends, 4408 when the client does not take what it is sent. Before it opens: 401 ' +
  'and 403 for a key that will not do, 429 with `Retry-After` past a limit.';

const TICKET: Json = {
  type: 'string',
  description: 'What `POST /api/tickets` answered, for a client that can send neither the key nor the cookie.',
};

const RUN: ChannelText = {
  title: 'Tells where a run stands, from the moment of connecting to its end',
  description: `Text from clients is ignored. ${CLOSES}`,
  address: '/ws/council/{run_id}',
  servers: [{ $ref: '#/servers/socket' }],
  bindings: { ws: { method: 'GET', query: recordOf({ ticket: TICKET }), bindingVersion: '0.1.0' } },
};

const FROM: Json = {
  type: 'integer',
  minimum: -1,
  default: -1,
  description: 'Last `seq` that is known already: the events after it are sent. -1: all.',
};

const RUN_IN_FULL: ChannelText = {
  ...RUN,
  title: 'Tells every event of a run, and drafts while they are written',
  description: `Without gaps and repeats when \`from\` is the last \`seq\` that is known. ${CLOSES}`,
  bindings: {
    ws: {
      method: 'GET',
      query: {
        ...recordOf({ events: { type: 'string', const: 'all' }, from: FROM, ticket: TICKET }),
        required: ['events'],
      },
      bindingVersion: '0.1.0',
    },
  },
};

const RUN_EVENTS: ChannelText = {
  title: "Streams a run's events as they are recorded",
  description:
    'Server-sent events: `id` is the seq, `event` the type, `data` the message. `Last-Event-ID` comes before `from`; ' +
    'asked from the last event on, the service answers 204.',
  address: '/api/runs/{run_id}/stream',
  servers: [{ $ref: '#/servers/rest' }],
};

const FEED: ChannelText = {
  title: 'Streams the events of all runs, in the order of the log',
  description:
    'Server-sent events: `id` is the place after the event, which every instance knows, `event` the type, `data` the ' +
    'message. `Last-Event-ID` comes before `from`. A place may come without an event: what was passed over.',
  address: '/api/feed',
  servers: [{ $ref: '#/servers/rest' }],
};

const APPROVALS: ChannelText = {
  title: 'Streams the comings and goings of pauses that wait for a decision',
  description:
    'Server-sent events: `id` is the place after the event, `event` is `waiting` or `gone`, `data` the message. Without ' +
    'a place it begins with all that waits, which has no `id`. `Last-Event-ID` comes before `from`. A place may come ' +
    'without an event: what was passed over.',
  address: '/api/approvals/stream',
  servers: [{ $ref: '#/servers/rest' }],
};

const SECURITY_SCHEMES: Json = {
  key: { type: 'http', scheme: 'bearer', description: 'A key with the scope `read`, once any key was added.' },
  session: {
    type: 'httpApiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description: 'What `POST /api/session` set. A socket then needs the Origin of this service.',
  },
  ticket: { type: 'httpApiKey', in: 'query', name: 'ticket', description: 'Good for one connection, 30 seconds long.' },
};

const SECURITY = Object.keys(SECURITY_SCHEMES).map((name) => ({ $ref: `#/components/securitySchemes/${name}` }));

function server(protocol: 'ws' | 'http'): Json {
  const description = 'The host and port that the service listens on, or that a proxy gives it.';
  return {
    host: '{host}',
    protocol,
    security: SECURITY,
    variables: { host: { description, default: '127.0.0.1:8000' } },
  };
}

function channel(text: ChannelText, messages: readonly Message[]): Json {
  return {
    ...text,
    ...(text.address.includes('{run_id}') && { parameters: { run_id: { description: 'The id of the run.' } } }),
    messages: Object.fromEntries(messages.map(({ title }) => [title, { $ref: `#/components/messages/${title}` }])),
  };
}

function operation(name: string, { title }: ChannelText, bindings?: Json): Json {
  return { action: 'send', channel: { $ref: `#/channels/${name}` }, summary: title, ...(bindings && { bindings }) };
}

function recordOf(properties: Json): Json {
  return { type: 'object', properties };
}

/** A message of a channel: its name there, and what it holds. */
interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary: unknown;
  readonly payload: Json;
}

/** The messages that a schema describes: each member of a union of them that is not in a file of its own, or the only one. */
function messagesOf(file: SchemaName, schemas: SchemaRegistry, components: Components): readonly Message[] {
  const schema = schemas.document(file);
  const members = Array.isArray(schema['oneOf']) ? schema['oneOf'].filter(isInPlace) : [schema];
  return members.map((member) => {
    const { title = file, description, properties } = member;
    const event = properties?.['event']?.['const'];
    const name = typeof event === 'string' ? event : title;
    return { name, title, summary: description, payload: components.placed(member, file) };
  });
}

function isInPlace(member: unknown): member is JsonSchema {
  return isRecord(member) && member['$ref'] === undefined;
}
