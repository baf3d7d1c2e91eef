import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { SESSION_COOKIE } from '../../src/api/access/authentication.js';
import type { JsonSchema, SchemaName } from '../../src/api/schemas.js';
import { openSchemas } from '../../src/api/schemas.js';
import { isRecord } from '../../src/system/untrusted.js';
import { openChannel } from '../support/channel-client.js';
import type { Described } from '../support/described-messages.js';
import { describedIn, partAt, record } from '../support/described-messages.js';
import { openEventStream } from '../support/event-stream-client.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

/** The official JSON Schema of AsyncAPI 3.0 documents. */
const OFFICIAL = '@asyncapi/specs/schemas/3.0.0-without-$id.json';

const MESSAGE_FILES = [
  'channel-messages.json',
  'rich-messages.json',
  'run-event.json',
  'feed-event.json',
  'approval-change.json',
] as const;

/** The schemas of messages in a file: the members of its union, or the only one. */
function messageSchemas(file: SchemaName): readonly JsonSchema[] {
  const schema = openSchemas().document(file);
  const members = Array.isArray(schema['oneOf']) ? schema['oneOf'].filter(isRecord) : [schema];
  return members.map((member) =>
    typeof member['$ref'] === 'string' ? openSchemas().document(member['$ref']) : member,
  );
}

describe('GET /api/asyncapi.json', () => {
  let service: RunningService;
  let rest: RestClient;
  let document: unknown;
  let runId: string;
  let described: Described | null = null;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
    document = JSON.parse((await rest.get('/api/asyncapi.json')).text);
    const nodes = [{ id: 'write' }, { id: 'judge', type: 'critic' }];
    const edges = [{ source: 'write', target: 'judge' }];
    await rest.post('/api/councils/', { id: 'pair', name: 'Pair', nodes, edges });
    const start = await rest.post('/api/councils/pair/run', { input_topic: 'Trees', god_mode: true });
    runId = rest.read(start, 202, 'run-start.json').run_id;
  });
  after(() => service.stop());

  it('conforms to the official schema of AsyncAPI 3.0', () => {
    const official: unknown = JSON.parse(readFileSync(new URL(import.meta.resolve(OFFICIAL)), 'utf8'));
    const validate = new Ajv({ strict: false, validateFormats: false, logger: false }).compile(record(official));
    expect(validate(document), JSON.stringify(validate.errors?.slice(0, 5))).to.be.true;
  });

  it('has a message with the name and description of each message schema', () => {
    const wanted = MESSAGE_FILES.flatMap(messageSchemas).map(({ title, description, properties }) => {
      const name = properties?.['event']?.['const'] ?? title;
      const summary = description === undefined ? {} : { summary: description };
      return [title, { name, title, ...summary, payload: { $ref: `#/components/schemas/${title}` } }];
    });
    expect(at('/components/messages')).to.deep.equal(Object.fromEntries(wanted));
    const sent = Object.values(record(at('/channels'))).flatMap((channel) =>
      Object.keys(record(record(channel)['messages'])),
    );
    expect(new Set(sent)).to.deep.equal(new Set(wanted.map(([title]) => title)));
  });

  it('describes the query parameters as their schemas do, and the cookie as the service sets it', () => {
    const queryOf = (operation: string) => record(at(`/operations/${operation}/bindings/http/query/properties`));
    for (const [operation, file] of [
      ['streamRunEvents', 'stream-query.json'],
      ['streamFeed', 'feed-query.json'],
      ['streamApprovals', 'approvals-stream-query.json'],
    ] as const) {
      const { ticket, ...query } = queryOf(operation);
      expect(query, operation).to.deep.equal(openSchemas().document(file).properties);
      expect(ticket, operation).to.include({ type: 'string' });
    }
    expect(at('/components/securitySchemes/session/name')).to.equal(SESSION_COOKIE);
  });

  it('refers only to parts of itself that exist', () => {
    const refs = [...refsIn(document)];
    expect(refs).not.to.be.empty;
    for (const ref of refs) expect(at(ref.slice(1)), ref).to.be.an('object');
  });

  it('describes every message of both channels, of the event stream and of the feed', async () => {
    const plain = openChannel(service.url, `/ws/council/${runId}`);
    const rich = openChannel(service.url, `/ws/council/${runId}?events=all`);
    const stream = openEventStream(service.url, `/api/runs/${runId}/stream`);
    await plain.until(({ event }) => event === 'run_paused');
    await rest.post(`/api/councils/run/${runId}/approve`, { action: 'modify', modified_state: { critic_score: null } });
    await plain.until(({ event }) => event === 'run_resumed');
    await rest.until(runId, ({ status }) => status === 'paused');
    await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
    await rest.until(runId, isOver);
    const unknown = openChannel(service.url, `/ws/council/${NO_RUN}`);
    await Promise.all([plain.closed, rich.closed, stream.over, unknown.closed]);

    const received = [...plain.messages, ...unknown.messages];
    expect(names(received)).to.include.members([
      'connected',
      'node_active',
      'run_paused',
      'run_resumed',
      'run_complete',
    ]);
    for (const message of received) expectDescribed('run', message);
    expect(names(rich.messages)).to.include.members(['run_event', 'node_start', 'node_complete', 'run_complete']);
    for (const message of rich.messages) expectDescribed('runInFull', message);
    expect(stream.events.map(({ event }) => event)).to.include.members(['RunRequested', 'GateDecided', 'RunCompleted']);
    for (const { data } of stream.events) expectDescribed('runEvents', JSON.parse(data));
    const feed = openEventStream(service.url, '/api/feed');
    await feed.until(({ event }) => event === 'RunCompleted');
    feed.leave();
    for (const { data } of feed.events) expectDescribed('feed', JSON.parse(data));
  });

  it('has a channel for every event stream that the OpenAPI document lists under /api', async () => {
    const openApi: unknown = JSON.parse((await rest.get('/api/openapi.json')).text);
    const streams = Object.entries(record(partAt(openApi, '/paths')))
      // MCP and OpenAI's API answer each request with a stream of its own.
      .filter(([path, item]) => path.startsWith('/api/') && JSON.stringify(item).includes('"text/event-stream"'))
      .map(([path]) => path);
    const addresses = Object.values(record(at('/channels'))).map((channel) => record(channel)['address']);
    expect(streams).to.include('/api/approvals/stream');
    expect(addresses).to.include.members(streams);
  });

  it('describes every message of the stream of approvals', async () => {
    const start = await rest.post('/api/councils/pair/run', { input_topic: 'Trees', god_mode: true });
    const paused = rest.read(start, 202, 'run-start.json').run_id;
    const approvals = openEventStream(service.url, '/api/approvals/stream');
    await approvals.until(({ event }) => event === 'waiting');
    await rest.post(`/api/councils/run/${paused}/approve`, { action: 'reject' });
    await approvals.until(({ event }) => event === 'gone');
    approvals.leave();
    for (const { data } of approvals.events) expectDescribed('approvals', JSON.parse(data));
  });

  const expectDescribed: Described = (channel, message) => (described ??= describedIn(document))(channel, message);

  /** The value at a JSON Pointer in the document. */
  const at = (pointer: string): unknown => partAt(document, pointer);
});

function names(messages: readonly { readonly event: string }[]): readonly string[] {
  return messages.map(({ event }) => event);
}

function* refsIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '$ref' && typeof member === 'string') yield member;
    else yield* refsIn(member);
  }
}
