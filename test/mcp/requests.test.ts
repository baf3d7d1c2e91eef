import { expect } from 'chai';
import type { Scope } from '../../src/generated/schemas.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { readConfig } from '../../src/config.js';
import { pausedBefore } from '../support/god-run.js';
import { ALL_SCOPES, addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import { mcpClient } from '../support/mcp-client.js';
import { rawExchange } from '../support/raw-exchange.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

/** The tools and the scopes that they need. */
const SCOPES: Readonly<Record<string, Scope>> = {
  list_councils: 'read',
  start_council: 'run',
  await_run: 'read',
  get_run: 'read',
  list_approvals: 'read',
  decide: 'approve',
};

const ACCEPT = { Accept: 'application/json, text/event-stream' };
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const calling = (name: string, args: object) => ({
  ...{ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name, arguments: args } },
});

/** What each message holds without a handshake. */
const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

describe('POST /mcp without keys', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: scriptedModel(() => 'hold') });
    rest = restClient(service.url);
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  const post = (body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
    rest.post('/mcp', body, { ...ACCEPT, ...headers });

  it('answers each request without a session, with and without a trailing slash', async () => {
    for (const path of ['/mcp', '/mcp/']) {
      const reply = await rest.post(path, LIST, ACCEPT);
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.headers.get('Mcp-Session-Id')).to.equal(null);
      expect(reply.headers.get('Content-Type')).to.match(/^text\/event-stream/);
      expect(reply.text).to.include('"name":"start_council"');
    }
  });

  it('answers 202 without a body to a notification', async () => {
    const reply = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([reply.status, reply.text]).to.deep.equal([202, '']);
  });

  it('answers 405 to GET, HEAD, DELETE and PUT', async () => {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PUT']) {
      const reply = await fetch(`${service.url}/mcp`, { method, headers: ACCEPT });
      expect([reply.status, reply.headers.get('Allow')], method).to.deep.equal([405, 'OPTIONS, POST']);
    }
  });

  it('refuses foreign hosts and pages', async () => {
    const foreign = (headers: Record<string, string>) => post(LIST, headers);
    expect((await foreign({ Origin: 'http://evil.test' })).status).to.equal(403);
    expect((await foreign({ Origin: 'null' })).status).to.equal(403);
    expect((await foreign({ Origin: service.url })).status).to.equal(200);
    const head = 'POST /mcp HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
    expect((await rawExchange(service.url, [head])).status).to.equal(421);
  });

  it('has the limits of a JSON body, and takes one message a request', async () => {
    const large = calling('start_council', { topic: 'x'.repeat(1024 * 1024) });
    expect((await post(large)).status).to.equal(413);
    expect((await post('{', { 'Content-Type': 'application/json' })).status).to.equal(422);
    expect((await post('{}', { 'Content-Type': 'text/plain' })).status).to.equal(415);
    expect(rest.problem(await post([LIST, LIST]), 422).errors?.[0]?.loc).to.deep.equal(['body']);
    expect((await post(LIST, { Accept: 'application/json' })).status).to.equal(406);
    expect((await post({ hello: 'world' })).status).to.equal(400);
  });

  it('opens no subscription, and says in its capabilities that no list changes', async () => {
    const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const legacy = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize });
    const modern = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' };
    const discover = { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: MODERN } };
    for (const { text } of [legacy, await post(discover, modern)])
      expect(text).to.include('"capabilities":{"tools":{"listChanged":false}}');
    const listen = { _meta: MODERN, notifications: { toolsListChanged: true } };
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'subscriptions/listen' };
    const { text } = await post({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: listen }, headers);
    expect(text).to.include('"error"').and.to.include('imit reached');
  });

  it('begins its answer at once while it waits, so that proxies keep the connection open', async () => {
    const runId = await rest.start();
    const { params, ...about } = calling('await_run', { run_id: runId, timeout_s: 50 });
    const modern = { ...about, params: { ...params, _meta: MODERN } };
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'await_run' };
    for (const [message, more] of [
      [{ ...about, params }, {}],
      [modern, headers],
    ] as const) {
      const leave = new AbortController();
      const response = await fetch(`${service.url}/mcp`, {
        ...{ method: 'POST', body: JSON.stringify(message), signal: leave.signal },
        headers: { 'Content-Type': 'application/json', ...ACCEPT, ...more },
      });
      const first = await response.body?.getReader().read();
      // The SDK's own comment has a text, and comes after 15 s.
      expect(Buffer.from(first?.value ?? []).toString()).to.equal(':\n\n');
      leave.abort();
    }
    await untilTrue(() => service.context.feed.size === 0);
  });

  it('leaves nothing behind of a client that goes away while it waits for a run', async () => {
    const { feed } = service.context;
    const runId = await rest.start();
    const before = feed.size;
    const gone = new AbortController();
    const waiting = calling('await_run', { run_id: runId, timeout_s: 50 });
    const clients = Array.from({ length: 20 }, () =>
      fetch(`${service.url}/mcp`, {
        ...{ method: 'POST', body: JSON.stringify(waiting), signal: gone.signal },
        headers: { 'Content-Type': 'application/json', ...ACCEPT },
      }).then((response) => response.text()),
    );
    await untilTrue(() => feed.size === before + 1);
    gone.abort();
    for (const client of clients) expect(String(await rejectionOf(client))).to.include('AbortError');
    await untilTrue(() => feed.size === before);
  });

  it('ends the waiting when the service stops', async () => {
    const other = await startService({ model: scriptedModel(() => 'hold') });
    const runId = await restClient(other.url).start();
    const call = calling('await_run', { run_id: runId, timeout_s: 50 });
    const waiting = restClient(other.url).post('/mcp', call, ACCEPT);
    await untilTrue(() => other.context.feed.size === 1);
    await other.stop();
    // With the state of the run, or cut off.
    await Promise.allSettled([waiting]);
    expect(other.faults).to.deep.equal([]);
  });
});

describe('POST /mcp with keys', () => {
  let service: RunningService;
  let rest: RestClient;
  const keys = new Map<Scope, string>();

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([8])) });
    rest = restWith(service.url, await addFirstKey(service.url));
    for (const scope of ALL_SCOPES) keys.set(scope, await addKey(rest, { name: scope, scopes: [scope] }));
    const nodes = [{ id: 'poet' }];
    expect((await rest.post('/api/councils/', { id: 'poem', name: 'Poem', nodes })).status).to.equal(201);
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  it('lists to each key the tools of its scopes and refuses the others with the missing scope', async () => {
    for (const [scope, key] of keys) {
      const mcp = await mcpClient(service.url, { key });
      const own = Object.keys(SCOPES).filter((tool) => SCOPES[tool] === scope);
      expect(
        (await mcp.tools()).map(({ name }) => name),
        scope,
      ).to.deep.equal(own);
      for (const tool of Object.keys(SCOPES).filter((each) => !own.includes(each)))
        expect(await mcp.refusal(tool), scope).to.include(`lacks the scope "${SCOPES[tool]}", which ${tool} needs`);
      await mcp.close();
    }
  });

  it('records the name of the key with the start and the decision', async () => {
    const starter = await mcpClient(service.url, { key: keys.get('run') ?? '' });
    const approver = await mcpClient(service.url, { key: keys.get('approve') ?? '' });
    const { structured } = await starter.call('start_council', { council: 'poem', topic: 'Sea', god_mode: true });
    const runId = String(fieldOf(structured, 'run_id'));
    const seq = await pausedBefore(service.context, runId, 'poet');
    await approver.call('decide', { run_id: runId, action: 'reject', expected_seq: seq });
    const record = (await rest.get(`/api/runs/${runId}/events`)).text;
    const actors = [...record.matchAll(/"type":"(\w+)"[^}]*?"actor":"(\w+)"/g)].map(([, type, actor]) => [type, actor]);
    expect(actors).to.deep.include(['RunRequested', 'run']).and.to.deep.include(['GateDecided', 'approve']);
    await Promise.all([starter.close(), approver.close()]);
  });

  it('answers 401 with a challenge without a valid key', async () => {
    for (const headers of [{}, bearer(`council_${'x'.repeat(43)}`), { Authorization: 'Basic eDp5' }]) {
      const reply = await restClient(service.url, headers).post('/mcp', LIST, ACCEPT);
      expect(reply.status).to.equal(401);
      expect(reply.headers.get('WWW-Authenticate')).to.match(/^Bearer /);
    }
    const refused = await rejectionOf(mcpClient(service.url, { key: 'x' }));
    expect(fieldOf(refused, 'status')).to.equal(401);
  });

  it('checks the key of each request anew', async () => {
    const key = await addKey(rest, { name: 'short-lived', scopes: ['read'] });
    const mcp = await mcpClient(service.url, { key });
    const reply = await rest.post('/api/councils/poem/run', { input_topic: 'Sea', god_mode: true });
    const runId = rest.read(reply, 202, 'run-start.json').run_id;
    await pausedBefore(service.context, runId, 'poet');
    expect((await mcp.call('get_run', { run_id: runId })).structured).to.deep.include({ status: 'paused' });
    expect((await rest.send('DELETE', '/api/keys/short-lived')).status).to.equal(204);
    expect(fieldOf(await rejectionOf(mcp.call('get_run', { run_id: runId })), 'status')).to.equal(401);
    await mcp.close();
  });

  it('ends the answer of a key that is revoked while it waits', async () => {
    const held = await startService({ model: scriptedModel(() => 'hold') });
    const by = restWith(held.url, await addFirstKey(held.url));
    const key = await addKey(by, { name: 'short-lived', scopes: ['read'] });
    const runId = await by.start();
    const waiting = fetch(`${held.url}/mcp`, {
      ...{ method: 'POST', body: JSON.stringify(calling('await_run', { run_id: runId, timeout_s: 50 })) },
      headers: { 'Content-Type': 'application/json', ...ACCEPT, ...bearer(key) },
    }).then((response) => response.text());
    await untilTrue(() => held.context.feed.size === 1);
    expect((await by.send('DELETE', '/api/keys/short-lived')).status).to.equal(204);
    await rejectionOf(waiting);
    await untilTrue(() => held.context.feed.size === 0);
    expect(held.faults).to.deep.equal([]);
    await held.stop();
  });
});

describe('POST /mcp with limits', () => {
  it('counts requests and starts as REST does', async () => {
    const { limits } = readConfig({ MAX_REQUESTS_PER_SECOND: '100', MAX_RUNS_PER_MINUTE: '1' });
    const service = await startService({ model: scriptedModel(councilScript([8])), limits });
    const mcp = await mcpClient(service.url);
    const keyed = { topic: 'Trees', idempotency_key: 'once' };
    await mcp.call('start_council', keyed);
    await mcp.call('start_council', keyed);
    const refused = await mcp.refusal('start_council', { topic: 'Trees' });
    expect(refused).to.match(/^Too many runs started: at most 1 in 60 s; try again in \d+ s\.$/);
    const rest = restClient(service.url);
    const reply = await rest.post('/mcp', calling('get_run', { run_id: NO_RUN }), ACCEPT);
    expect(reply.headers.get('RateLimit')).to.match(/^"requests";r=\d+/);
    expect((await rest.post('/api/councils/run', { input_topic: 'Trees' })).status).to.equal(429);
    await mcp.close();
    await service.stop();
  });
});
