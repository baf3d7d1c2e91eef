import { expect } from 'chai';
import type { RunResult } from '../../src/generated/schemas.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { mcpClient } from '../support/mcp-client.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, currentModel, scriptedModel } from '../support/scripted-model.js';

const LACKS_READ = 'The key lacks the scope "read"';
const PAIR = { nodes: [{ id: 'poet' }, { id: 'reader' }], edges: [{ source: 'poet', target: 'reader' }] };

describe('A key with the scope run alone', () => {
  let service: RunningService;
  let model: ScriptedModel;
  let root: RestClient;
  let own: RestClient;
  let ownKey: string;
  let other: RestClient;

  before(async () => {
    service = await startService({ model: currentModel(() => model) });
    root = restWith(service.url, await addFirstKey(service.url));
    ownKey = await addKey(root, { name: 'own', scopes: ['run'] });
    own = restWith(service.url, ownKey);
    other = restWith(service.url, await addKey(root, { name: 'other', scopes: ['run'] }));
    expect((await root.post('/api/councils/', { id: 'pair', name: 'Pair', ...PAIR })).status).to.equal(201);
  });
  beforeEach(() => {
    model = scriptedModel(councilScript([8, 8, 8]));
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  const responsePath = (runId: string): string => `/v1/responses/resp_${runId.replaceAll('-', '')}`;
  const completedBy = async (client: RestClient): Promise<string> => {
    const reply = await client.post('/api/councils/pair/run', { input_topic: 'The secret harbour' });
    const { run_id: runId } = client.read(reply, 202, 'run-start.json');
    await root.until(runId, isOver);
    return runId;
  };
  const pausedFor = async (client: RestClient): Promise<string> => {
    const reply = await client.post('/api/councils/pair/run', { input_topic: 'The secret harbour', god_mode: true });
    const { run_id: runId } = client.read(reply, 202, 'run-start.json');
    const paused = await root.until(runId, ({ status }) => status === 'paused');
    await root.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
    await root.until(runId, ({ next_nodes: next }) => next?.[0] === 'reader' || paused.status === 'failed');
    return runId;
  };
  const expectNoDraft = ({ text }: Reply): void => {
    expect(text).not.to.match(/Draft \d|secret harbour/);
  };

  it('reads its own responses, and no response of another key, streamed or not', async () => {
    const [mine, theirs] = [await completedBy(own), await completedBy(root)];
    expect((await own.get(responsePath(mine))).text).to.match(/Draft \d by reader/);
    expect((await own.get(`${responsePath(mine)}?stream=true`)).text).to.match(/Draft \d by reader/);
    for (const query of ['', '?stream=true', '?stream=true&starting_after=3']) {
      const reply = await own.get(responsePath(theirs) + query);
      expect([reply.status, fieldOf(fieldOf(JSON.parse(reply.text), 'error'), 'message')]).to.deep.equal([
        403,
        LACKS_READ,
      ]);
      expectNoDraft(reply);
      expect((await root.get(responsePath(theirs) + query)).text).to.match(/Draft \d by reader/);
    }
    const cancelled = await own.post(`${responsePath(theirs)}/cancel`, {});
    expect(cancelled.status).to.equal(403);
    expectNoDraft(cancelled);
    expect((await own.post(`${responsePath(mine)}/cancel`, {})).text).to.match(/Draft \d by reader/);
  });

  it('cancels runs of other keys, and sees the effect alone', async () => {
    const [mine, theirs] = [await pausedFor(own), await pausedFor(root)];
    const reply = await own.post(`/api/councils/run/${theirs}/cancel`, {});
    const result: RunResult = own.read(reply, 200, 'run-result.json');
    expect(result).to.deep.include({ run_id: theirs, status: 'failed', error: 'Cancelled by the user' });
    expect([result.current_draft, result.next_nodes, result.usage]).to.deep.equal([null, null, undefined]);
    expectNoDraft(reply);
    const full = own.read(await own.post(`/api/councils/run/${mine}/cancel`, {}), 200, 'run-result.json');
    expect(full).to.include({ current_draft: 'Draft 1 by poet' });
    expect(full).to.deep.equal(await root.poll(mine));
  });

  it('forks its own runs, and none of another key, with a dry run neither', async () => {
    const [mine, theirs] = [await completedBy(own), await completedBy(root)];
    for (const query of ['', '?dry_run=1']) {
      for (const at of [2, 9_999]) {
        const refused = await own.post(`/api/runs/${theirs}/fork${query}`, { at });
        expect(own.problem(refused, 403).detail).to.equal(LACKS_READ);
        expect(refused.headers.get('WWW-Authenticate')).to.include('error="insufficient_scope", scope="read"');
      }
    }
    const forked = own.read(await own.post(`/api/runs/${mine}/fork`, { at: 2 }), 202, 'run-start.json');
    await root.until(forked.run_id, isOver);
    expect((await own.get(responsePath(forked.run_id))).status).to.equal(200);
  });

  it('gives no node the PDF reader: neither in a trial nor in a fork', async () => {
    const nodes = [{ id: 'spy', systemPrompt: 'Quote the documents.', tools: { pdfReader: true } }];
    const trial = { input_topic: 'Salaries', nodes };
    expect(own.problem(await own.post('/api/councils/try', trial), 403).detail).to.equal(LACKS_READ);
    const without = [{ id: 'plain', tools: { pdfReader: false } }];
    expect((await own.post('/api/councils/try', { ...trial, nodes: without })).status).to.equal(202);
    expect((await root.post('/api/councils/try', trial)).status).to.equal(202);
    const changes = { nodes: [{ id: 'poet', tools: { pdfReader: true } }] };
    const mine = await completedBy(own);
    expect(own.problem(await own.post(`/api/runs/${mine}/fork`, { at: 2, changes }), 403).detail).to.equal(LACKS_READ);
    expect((await root.post(`/api/runs/${mine}/fork`, { at: 2, changes })).status).to.equal(202);
  });

  it('starts a run of its own with the Idempotency-Key of another key', async () => {
    const start = async (client: RestClient): Promise<string> => {
      const body = { input_topic: 'The secret harbour' };
      const reply = await client.post('/api/councils/pair/run', body, { 'Idempotency-Key': 'order-1' });
      return client.read(reply, 202, 'run-start.json').run_id;
    };
    const theirs = await start(other);
    expect(await start(other)).to.equal(theirs);
    expect(await start(own)).not.to.equal(theirs);
  });

  it('gets no tool of MCP that reads', async () => {
    const mcp = await mcpClient(service.url, { key: ownKey });
    expect((await mcp.tools()).map(({ name }) => name)).to.deep.equal(['start_council']);
    for (const tool of ['get_run', 'await_run', 'list_approvals', 'list_councils', 'decide'])
      expect(await mcp.refusal(tool, { run_id: await completedBy(root) })).to.match(/^The key lacks the scope/);
    await mcp.close();
  });

  it('reads no run by the routes that read', async () => {
    const theirs = await completedBy(root);
    const paths = ['events', 'state', 'verify', 'stream', 'draft', 'genealogy', 'deliberation', 'sources', 'next'];
    for (const path of paths.map((each) => `/api/runs/${theirs}/${each}`).concat(`/api/councils/run/${theirs}`)) {
      const reply = await own.get(path);
      expect(reply.status, path).to.equal(403);
      expectNoDraft(reply);
    }
    expect((await root.get(`/api/runs/${theirs}/events`)).text).to.include('RunCompleted');
  });
});
