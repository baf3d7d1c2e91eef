import { expect } from 'chai';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { MCP_ACCEPT, MCP_MODERN, toolCall } from '../support/mcp-client.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

describe('A call of await_run', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: scriptedModel(() => 'hold') });
    rest = restClient(service.url);
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  it('begins its answer at once while it waits, so that proxies keep the connection open', async () => {
    const runId = await rest.start();
    const { params, ...about } = toolCall('await_run', { run_id: runId, timeout_s: 50 });
    const modern = { ...about, params: { ...params, _meta: MCP_MODERN } };
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'await_run' };
    for (const [message, more] of [
      [{ ...about, params }, {}],
      [modern, headers],
    ] as const) {
      const leave = new AbortController();
      const response = await fetch(`${service.url}/mcp`, {
        method: 'POST',
        body: JSON.stringify(message),
        signal: leave.signal,
        headers: { 'Content-Type': 'application/json', ...MCP_ACCEPT, ...more },
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
    const waiting = toolCall('await_run', { run_id: runId, timeout_s: 50 });
    const clients = Array.from({ length: 20 }, () =>
      fetch(`${service.url}/mcp`, {
        method: 'POST',
        body: JSON.stringify(waiting),
        signal: gone.signal,
        headers: { 'Content-Type': 'application/json', ...MCP_ACCEPT },
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
    const call = toolCall('await_run', { run_id: runId, timeout_s: 50 });
    const waiting = restClient(other.url).post('/mcp', call, MCP_ACCEPT);
    await untilTrue(() => other.context.feed.size === 1);
    await other.stop();
    // With the state of the run, or cut off.
    await Promise.allSettled([waiting]);
    expect(other.faults).to.deep.equal([]);
  });

  it('ends the answer of a key that is revoked while it waits', async () => {
    const held = await startService({ model: scriptedModel(() => 'hold') });
    const by = restWith(held.url, await addFirstKey(held.url));
    const key = await addKey(by, { name: 'short-lived', scopes: ['read'] });
    const runId = await by.start();
    const call = toolCall('await_run', { run_id: runId, timeout_s: 50 });
    const waiting = restWith(held.url, key).post('/mcp', call, MCP_ACCEPT);
    await untilTrue(() => held.context.feed.size === 1);
    expect((await by.send('DELETE', '/api/keys/short-lived')).status).to.equal(204);
    await rejectionOf(waiting);
    await untilTrue(() => held.context.feed.size === 0);
    expect(held.faults).to.deep.equal([]);
    await held.stop();
  });
});
