import { expect } from 'chai';
import type { BlueprintCreate, RunResult } from '../../src/generated/schemas.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { mcpClient } from '../support/mcp-client.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, currentModel, scriptedModel } from '../support/scripted-model.js';

const PAIR = { nodes: [{ id: 'poet' }, { id: 'reader' }], edges: [{ source: 'poet', target: 'reader' }] };
const TOPIC = { input_topic: 'The sea' };

describe('A council that always pauses', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  let councils = 0;

  before(async () => {
    service = await startService({ model: currentModel(() => model) });
    rest = restClient(service.url);
  });
  beforeEach(() => {
    model = scriptedModel(councilScript([8, 8, 8]));
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  const saved = async (more: Partial<BlueprintCreate>): Promise<string> => {
    const body = { id: `council-${(councils += 1)}`, name: 'Pair', ...PAIR, ...more };
    return rest.read(await rest.post('/api/councils/', body), 201, 'blueprint.json').id;
  };
  const isPausedBefore =
    (node: string) =>
    ({ next_nodes: next }: RunResult): boolean =>
      next?.[0] === node;
  const approved = async (runId: string): Promise<void> => {
    expect((await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' })).status).to.equal(200);
  };
  /** The revision of a run's first event of a type, or of its event for a node. */
  const seqOf = async (runId: string, type: string, node?: string): Promise<number> => {
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const found = events.find(
      (each) => each.type === type && (node === undefined || fieldOf(each.data, 'node') === node),
    );
    return found?.seq ?? -1;
  };
  const forked = async (runId: string, body: object): Promise<string> =>
    rest.read(await rest.post(`/api/runs/${runId}/fork`, body), 202, 'run-start.json').run_id;

  it('pauses before its first node, whatever the start says: by REST, /v1 and MCP', async () => {
    const id = await saved({ god_mode: 'always' });
    const started = async (path: string, body: object): Promise<string> => {
      const reply = await rest.post(path, body);
      return reply.headers.get('Council-Run-Id') ?? String(fieldOf(JSON.parse(reply.text), 'run_id'));
    };
    const runs = [
      await started(`/api/councils/${id}/run`, TOPIC),
      await started(`/api/councils/${id}/run`, { ...TOPIC, god_mode: false }),
      await started('/v1/responses', { model: `council/${id}`, input: 'The sea', background: true }),
    ];
    const mcp = await mcpClient(service.url);
    const { structured } = await mcp.call('start_council', { topic: 'The sea', council: id, god_mode: false });
    runs.push(String(fieldOf(structured, 'run_id')));
    await mcp.close();
    for (const runId of runs) {
      await rest.until(runId, isPausedBefore('poet'));
      const record = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
      expect(record.execution_mode).to.equal('god-mode');
    }
    expect(model.requests).to.deep.equal([]);
  });

  it('pauses when a chat asks it, and answers the chat after the approvals', async () => {
    const id = await saved({ god_mode: 'always' });
    const messages = [{ role: 'user', content: 'The sea' }];
    const chat = rest.post('/v1/chat/completions', { model: `council/${id}`, messages });
    const waiting = async (): Promise<string> => {
      for (;;) {
        const { text } = await rest.get(`/api/approvals?blueprint=${id}`);
        const runId = fieldOf(fieldOf(JSON.parse(text), '0'), 'run_id');
        if (typeof runId === 'string') return runId;
      }
    };
    const runId = await waiting();
    for (const node of ['poet', 'reader']) {
      await rest.until(runId, isPausedBefore(node));
      await approved(runId);
    }
    expect((await chat).text).to.include('by reader');
  });

  it('answers a task of a chat front end without a run, and a trial as its start asks', async () => {
    const id = await saved({ god_mode: 'always' });
    const messages = [{ role: 'user', content: '### Task: a title' }];
    const task = await rest.post('/v1/chat/completions', { model: `council/${id}`, messages });
    expect([task.status, task.headers.get('Council-Run-Id')]).to.deep.equal([200, null]);
    expect(JSON.parse((await rest.get(`/api/runs/?blueprint_id=${id}`)).text)).to.deep.equal([]);
    const trial = await rest.post('/api/councils/try', { ...TOPIC, ...PAIR, god_mode: true });
    await rest.until(rest.read(trial, 202, 'run-start.json').run_id, isPausedBefore('poet'));
  });

  it('is saved, kept by an update, removed by null, and refused with another value', async () => {
    const id = await saved({ god_mode: 'always' });
    const path = `/api/councils/${id}`;
    const shown = async (change: object): Promise<unknown> =>
      rest.read(
        await rest.send('PUT', path, { body: JSON.stringify(change), headers: JSON_BODY }),
        200,
        'blueprint.json',
      ).god_mode;
    expect(rest.read(await rest.get(path), 200, 'blueprint.json').god_mode).to.equal('always');
    expect(await shown({ name: 'Other' })).to.equal('always');
    expect(await shown({ god_mode: 'optional' })).to.equal('optional');
    expect(await shown({ god_mode: null })).to.equal(undefined);
    for (const wrong of ['never', true, '', ['always'], 1]) {
      const created = await rest.post('/api/councils/', { name: 'Wrong', ...PAIR, god_mode: wrong });
      expect(rest.problem(created, 422).errors?.[0]?.loc, String(wrong)).to.deep.equal(['body', 'god_mode']);
      const body = JSON.stringify({ god_mode: wrong });
      rest.problem(await rest.send('PUT', path, { body, headers: JSON_BODY }), 422);
      rest.problem(await rest.post('/api/councils/validate', { name: 'Wrong', ...PAIR, god_mode: wrong }), 422);
    }
  });

  it('pauses in a fork of a run that did not, before any further node', async () => {
    const id = await saved({});
    const parent = rest.read(await rest.post(`/api/councils/${id}/run`, TOPIC), 202, 'run-start.json').run_id;
    await rest.until(parent, ({ status }) => status === 'completed');
    await rest.send('PUT', `/api/councils/${id}`, { body: JSON.stringify({ god_mode: 'always' }), headers: JSON_BODY });
    const calls = model.requests.length;
    await rest.until(await forked(parent, { at: 0 }), isPausedBefore('poet'));
    const afterPoet = await forked(parent, { at: await seqOf(parent, 'NodeCompleted', 'poet') });
    await rest.until(afterPoet, isPausedBefore('reader'));
    for (const query of ['', '?dry_run=1']) {
      for (const node of ['poet', 'reader']) {
        const at = await seqOf(parent, 'NodeStarted', node);
        const refused = rest.problem(await rest.post(`/api/runs/${parent}/fork${query}`, { at }), 422);
        expect(refused.detail).to.include(`node "${node}" has begun, and its council asks for an approval`);
      }
    }
    expect(model.requests).to.have.lengthOf(calls);
    await approved(afterPoet);
    await rest.until(afterPoet, ({ status }) => status === 'completed');
  });

  it('keeps an approval in a fork only without changes', async () => {
    const id = await saved({ god_mode: 'always' });
    const parent = rest.read(await rest.post(`/api/councils/${id}/run`, TOPIC), 202, 'run-start.json').run_id;
    for (const node of ['poet', 'reader']) {
      await rest.until(parent, isPausedBefore(node));
      await approved(parent);
    }
    await rest.until(parent, ({ status }) => status === 'completed');
    const changes = { nodes: [{ id: 'reader', systemPrompt: 'Praise the sea.' }] };
    const started = await seqOf(parent, 'NodeStarted', 'reader');
    rest.problem(await rest.post(`/api/runs/${parent}/fork`, { at: started, changes }), 422);
    const resumed = await forked(parent, { at: started - 1, changes });
    await rest.until(resumed, isPausedBefore('reader'));
    for (const at of [started, started - 1])
      await rest.until(await forked(parent, { at }), ({ status }) => status === 'completed');
  });

  it('pauses again in a fork of a run that waited for its budget', async () => {
    const id = await saved({});
    const body = { ...TOPIC, budget: { tokens: 10 } };
    const parent = rest.read(await rest.post(`/api/councils/${id}/run`, body), 202, 'run-start.json').run_id;
    await rest.until(parent, ({ pause_reason: reason }) => reason === 'budget');
    await rest.post(`/api/councils/run/${parent}/approve`, { action: 'approve', budget: { tokens: 1_000_000 } });
    await rest.until(parent, ({ status }) => status === 'completed');
    await rest.send('PUT', `/api/councils/${id}`, { body: JSON.stringify({ god_mode: 'always' }), headers: JSON_BODY });
    for (const type of ['RunPaused', 'GateDecided', 'RunResumed']) {
      const at = await seqOf(parent, type);
      const fork = await forked(parent, { at, budget: { tokens: 1_000_000 } });
      const { pause_reason: reason } = await rest.until(fork, isPausedBefore('poet'));
      expect(reason, type).to.equal(undefined);
    }
  });
});

const JSON_BODY = { 'Content-Type': 'application/json' };
