import { expect } from 'chai';
import type { Scope } from '../../src/generated/schemas.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { pausedBefore } from '../support/god-run.js';
import { ALL_SCOPES, addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import { MCP_ACCEPT, mcpClient } from '../support/mcp-client.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

/** The tools and the scopes that they need. */
const SCOPES: Readonly<Record<string, Scope>> = {
  list_councils: 'read',
  start_council: 'run',
  await_run: 'read',
  get_run: 'read',
  list_approvals: 'read',
  decide: 'approve',
};
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

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

  it('keeps the expected_seq of a pause that a vote leaves open', async () => {
    const approvals = { by: ['scope:approve'], quorum: 2 };
    const voting = { id: 'voting', name: 'Voting', nodes: [{ id: 'poet' }], approvals };
    expect((await rest.post('/api/councils/', voting)).status).to.equal(201);
    const started = await rest.post('/api/councils/voting/run', { input_topic: 'Sea', god_mode: true });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    const vote = { run_id: runId, expected_seq: await pausedBefore(service.context, runId, 'poet') };
    const mcp = await mcpClient(service.url, { key: keys.get('approve') ?? '' });
    const { structured } = await mcp.call('decide', { ...vote, action: 'approve' });
    expect(structured).to.deep.include({ ...vote, status: 'paused' });
    await mcp.close();
  });

  it('answers 401 with a challenge without a valid key', async () => {
    for (const headers of [{}, bearer(`council_${'x'.repeat(43)}`), { Authorization: 'Basic eDp5' }]) {
      const reply = await restClient(service.url, headers).post('/mcp', LIST, MCP_ACCEPT);
      expect(reply.status).to.equal(401);
      expect(reply.headers.get('WWW-Authenticate')).to.match(/^Bearer /);
    }
    const refused = await rejectionOf(mcpClient(service.url, { key: 'x' }));
    expect(fieldOf(refused, 'status')).to.equal(401);
  });

  it('checks the key again at each request', async () => {
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
});
