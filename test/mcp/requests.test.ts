import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { MCP_ACCEPT, MCP_MODERN, mcpClient, toolCall } from '../support/mcp-client.js';
import { rawExchange } from '../support/raw-exchange.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { schemaCheck } from '../support/schema-check.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

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
    rest.post('/mcp', body, { ...MCP_ACCEPT, ...headers });

  it('answers each request without a session, with and without a trailing slash', async () => {
    for (const path of ['/mcp', '/mcp/']) {
      const reply = await rest.post(path, LIST, MCP_ACCEPT);
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
      const reply = await fetch(`${service.url}/mcp`, { method, headers: MCP_ACCEPT });
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
    const large = toolCall('start_council', { topic: 'x'.repeat(5 * 1024 * 1024) });
    expect((await post(large)).status).to.equal(413);
    expect((await post('{}', { 'Content-Type': 'text/plain' })).status).to.equal(415);
    expect(rest.problem(await post([LIST, LIST]), 422).errors?.[0]?.loc).to.deep.equal(['body']);
    expect((await post(LIST, { Accept: 'application/json' })).status).to.equal(406);
    expect((await post({ hello: 'world' })).status).to.equal(400);
  });

  it('answers a body that cannot be read as JSON with the error of JSON-RPC', async () => {
    const json = { 'Content-Type': 'application/json' };
    for (const body of ['{', '', 'null x', '\u{feff}', '['.repeat(600) + ']'.repeat(600), '{"id": 1e999}']) {
      const reply = await post(body, json);
      const answer: unknown = JSON.parse(reply.text);
      expect(reply.status, body).to.equal(400);
      expect(schemaCheck('mcp-answer.json')(answer), reply.text).to.equal(true);
      expect(answer, body).to.deep.include({ jsonrpc: '2.0', id: null });
      expect(fieldOf(fieldOf(answer, 'error'), 'code'), body).to.equal(-32_700);
      expect(fieldOf(fieldOf(answer, 'error'), 'message'), body).to.match(/^Parse error: /);
    }
    expect((await post('{', { 'Content-Type': 'text/plain' })).status).to.equal(415);
  });

  it('lists tools that models of OpenAI can call: their API refuses an object without properties', async () => {
    const bare = (value: unknown): readonly unknown[] => {
      if (typeof value !== 'object' || value === null) return [];
      const isBare = fieldOf(value, 'type') === 'object' && fieldOf(value, 'properties') === undefined;
      return [...(isBare ? [value] : []), ...Object.values(value).flatMap(bare)];
    };
    const mcp = await mcpClient(service.url, { era: 'legacy' });
    const tools = await mcp.tools();
    await mcp.close();
    expect(tools).to.have.length(6);
    for (const { name, inputSchema } of tools) expect(bare(inputSchema), name).to.deep.equal([]);
  });

  it('opens no subscription, and says in its capabilities that no list changes', async () => {
    const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const legacy = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize });
    const modern = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' };
    const discover = { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: MCP_MODERN } };
    for (const { text } of [legacy, await post(discover, modern)])
      expect(text).to.include('"capabilities":{"tools":{"listChanged":false}}');
    const listen = { _meta: MCP_MODERN, notifications: { toolsListChanged: true } };
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'subscriptions/listen' };
    const { text } = await post({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: listen }, headers);
    expect(text).to.include('"error"').and.to.include('imit reached');
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
    const reply = await rest.post('/mcp', toolCall('get_run', { run_id: NO_RUN }), MCP_ACCEPT);
    expect(reply.headers.get('RateLimit')).to.match(/^"requests";r=\d+/);
    expect((await rest.post('/api/councils/run', { input_topic: 'Trees' })).status).to.equal(429);
    await mcp.close();
    await service.stop();
  });
});
