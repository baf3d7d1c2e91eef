import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import type { BlueprintCreate, RunResult } from '../../src/generated/schemas.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Script, ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';
import { tempDir } from '../support/temp-dir.js';

const COUNCILS = '/api/councils/';
const EXAMPLES = new URL('../../../schemas/examples/', import.meta.url);
const TOPIC = { input_topic: 'Trees' };

describe('POST /api/councils/{blueprint_id}/run', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;

  let id: string;
  let blueprints = 0;
  const house = sharedService();

  async function serve(script: Script = councilScript([8])): Promise<void> {
    model = scriptedModel(script);
    service = await house.serve(model);
    rest = restClient(service.url);
    id = `bp-${(blueprints += 1)}`;
  }
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const save = async (draft: Partial<BlueprintCreate>): Promise<void> => {
    const body = { id, name: 'My council', nodes: [], ...draft };
    rest.read(await rest.post(COUNCILS, body), 201, 'blueprint.json');
  };
  const start = (body: object = TOPIC, headers = {}): Promise<Reply> =>
    rest.post(`${COUNCILS}${id}/run`, body, headers);
  const run = async (): Promise<RunResult> =>
    rest.until(rest.read(await start(), 202, 'run-start.json').run_id, isOver);

  it('answers with the run, its channel, the name and the mode', async () => {
    await serve();
    await save({ nodes: [{ id: 'a' }] });
    const auto = rest.read(await start(), 202, 'run-start.json');
    expect(auto.message).to.include('My council').and.to.include('Auto-Pilot');
    expect(auto.message).to.include(`/ws/council/${auto.run_id}`);
    const god = rest.read(await start({ ...TOPIC, god_mode: true }), 202, 'run-start.json');
    expect(god.message).to.include('God Mode');
    const paused = await rest.until(god.run_id, ({ status }) => status === 'paused');
    expect(paused).to.deep.include({ paused: true, next_nodes: ['a'] });
  });

  it('asks the model of the request where nodes and members name none', async () => {
    await serve(councilScript([9]));
    const members = [{ id: 'one' }, { id: 'two', model: 'own-2' }];
    await save({
      nodes: [
        { id: 'a', model: 'own-1' },
        { id: 'p', type: 'panel', members },
      ],
      edges: [{ source: 'a', target: 'p' }],
    });
    const { run_id: runId } = rest.read(await start({ ...TOPIC, model: 'wanted' }), 202, 'run-start.json');
    await rest.until(runId, isOver);
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const models = events.flatMap(({ type, data }) => (type === 'NodeStarted' && 'model' in data ? [data.model] : []));
    expect(models).to.deep.equal(['own-1', 'wanted', 'own-2']);
    rest.problem(await start({ ...TOPIC, model: '' }), 422);
  });

  it('begins at the entry that the blueprint names, until an update removes it', async () => {
    await serve(() => ({ text: 'Draft' }));
    await save({ nodes: [{ id: 'a' }, { id: 'b' }], edges: [{ source: 'a', target: 'b' }], entry: 'b' });
    const models = async (): Promise<readonly unknown[]> => {
      const { run_id: runId } = await run();
      const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
      return events.flatMap(({ type, data }) => (type === 'NodeStarted' && 'node' in data ? [data.node] : []));
    };
    expect(await models()).to.deep.equal(['b']);
    const updated = rest.read(
      await rest.send('PUT', `${COUNCILS}${id}`, { body: { entry: null } }),
      200,
      'blueprint.json',
    );
    expect(updated).to.not.have.property('entry');
    expect(await models()).to.deep.equal(['a', 'b']);
    const unknown = rest.read(
      await rest.send('PUT', `${COUNCILS}${id}`, { body: { entry: 'z' } }),
      200,
      'blueprint.json',
    );
    expect(unknown.warnings).to.deep.equal([{ path: 'entry', message: 'The entry "z" is no node' }]);
    expect(await run()).to.include({ status: 'failed' });
  });

  it('checks the body (422) before the blueprint (404), and names the unknown blueprint', async () => {
    await serve();
    rest.problem(await start({}), 422);
    expect(rest.problem(await start(), 404).detail).to.include(id);
    rest.problem(await rest.post(`${COUNCILS}run/run`, TOPIC), 404);
  });

  it('repeats its answer after the blueprint was changed and deleted, with any escaping of the path', async () => {
    await serve();
    await save({ nodes: [{ id: 'a' }] });
    const key = { 'Idempotency-Key': 'k' };
    const first = rest.read(await start(TOPIC, key), 202, 'run-start.json');
    await rest.send('PUT', `${COUNCILS}${id}`, { body: { name: 'Other', nodes: [] } });
    expect(rest.read(await start(TOPIC, key), 202, 'run-start.json')).to.deep.equal(first);
    await rest.send('DELETE', `${COUNCILS}${id}`);
    const escaped = await rest.post(`${COUNCILS}%62${id.slice(1)}/run/`, TOPIC, key);
    expect(rest.read(escaped, 202, 'run-start.json')).to.deep.equal(first);
    rest.problem(await start({ input_topic: 'Seas' }, key), 409);
    rest.problem(await start(TOPIC, { 'Idempotency-Key': 'k2' }), 404);
  });

  it('fails a run of an invalid blueprint with an error that names the edge', async () => {
    await serve();
    await save({ nodes: [{ id: 'a' }], edges: [{ id: 'e-1', source: 'a', target: 'gone' }] });
    const failed = await run();
    expect(failed.status).to.equal('failed');
    expect(failed.error).to.include('e-1').and.to.include('gone');
    const key = { 'Idempotency-Key': 'k' };
    const ids = await Promise.all(Array.from({ length: 20 }, () => start(TOPIC, key)));
    expect(new Set(ids.map((reply) => reply.text)).size).to.equal(1);
    expect(model.requests).to.have.length(0);
  });

  it('passes the settings of each node to the model, and names missing tools', async () => {
    await serve();
    const settings = { model: 'm-1', temperature: 0.25, maxOutputTokens: 77 };
    await save({ nodes: [{ id: 'a', systemPrompt: 'Be promptInput.', ...settings, tools: { webSearch: true } }] });
    const { run_id: runId } = await run();
    expect(model.requests[0]).to.include(settings);
    expect(model.requests[0]?.system).to.include('Be promptInput.').and.to.include('web search');
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const started = events.find(({ type }) => type === 'NodeStarted');
    expect(started?.data).to.deep.include({ tools: ['webSearch: unavailable'], model: 'm-1' });
  });
});

describe('A run of a changed and deleted blueprint', () => {
  it('continues with the original blueprint after a restart', async () => {
    const dir = tempDir();
    const first = await startService({ model: scriptedModel(councilScript([8])), dataDir: dir.path });
    const before = restClient(first.url);
    const nodes = [{ id: 'a' }, { id: 'b', label: 'Second', systemPrompt: 'As it was.' }];
    await before.post(COUNCILS, { id: 'bp', name: 'Before', nodes, edges: [{ source: 'a', target: 'b' }] });
    const begun = await before.post(`${COUNCILS}bp/run`, { ...TOPIC, god_mode: true });
    const { run_id: runId } = before.read(begun, 202, 'run-start.json');
    await before.send('PUT', `${COUNCILS}bp`, { body: { name: 'After', nodes: [{ id: 'c' }], edges: [] } });
    await before.send('DELETE', `${COUNCILS}bp`);
    await first.stop();

    const model = scriptedModel(councilScript([8]));
    const second = await startService({ model, dataDir: dir.path });
    const after = restClient(second.url);
    for (const next of ['a', 'b']) {
      const paused = await after.until(
        runId,
        ({ status, next_nodes: waiting }) => status === 'paused' && waiting?.[0] === next,
      );
      expect(paused.next_nodes).to.deep.equal([next]);
      expect((await after.post(`${COUNCILS}run/${runId}/approve`, { action: 'approve' })).status).to.equal(200);
    }
    expect(await after.until(runId, isOver)).to.include({ status: 'completed' });
    expect(model.requests.map(({ promptInput }) => promptInput.label)).to.deep.equal(['a', 'Second']);
    expect(model.requests[1]?.system).to.include('As it was.');
    await second.stop();
    dir.remove();
  });
});

describe('The example blueprints', () => {
  let service: RunningService;

  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  const files = readdirSync(EXAMPLES).filter((name) => name.endsWith('.json'));

  it('are explained in their file and in the README by the same three sentences', () => {
    const readme = readFileSync(new URL('README.md', EXAMPLES), 'utf8').replaceAll(/\s+/g, ' ');
    for (const file of files) {
      const { description = '' } = JSON.parse(readFileSync(new URL(file, EXAMPLES), 'utf8')) as {
        description?: string;
      };
      expect(description.split(/(?<=[.!?]) (?=\p{Lu})/u), file).to.have.length(3);
      expect(`${readme} `).to.include(`- \`${file}\`: ${description} `);
    }
  });

  it('name no models, so that they run with any provider', () => {
    for (const file of files) {
      const text = readFileSync(new URL(file, EXAMPLES), 'utf8');
      expect(text, file).not.to.match(/"(model|fallbacks)":/);
    }
  });

  for (const file of files) {
    it(`completes with the offline model: ${file}`, async () => {
      const rest = restClient(service.url);
      const headers = { 'Content-Type': 'application/json' };
      const body = readFileSync(new URL(file, EXAMPLES), 'utf8');
      for (const inner of body.match(/(?<="council": ")[\w-]+/g) ?? []) {
        const first = readFileSync(new URL(`${inner}.blueprint.json`, EXAMPLES), 'utf8');
        await rest.send('POST', COUNCILS, { body: first, headers });
      }
      await rest.send('DELETE', `${COUNCILS}${file.replace('.blueprint.json', '')}`);
      const saved = rest.read(await rest.send('POST', COUNCILS, { body, headers }), 201, 'blueprint.json');
      expect(saved.warnings).to.deep.equal([]);
      const begun = await rest.post(`${COUNCILS}${saved.id}/run`, { input_topic: 'Should our town build a sauna?' });
      const run = await rest.until(rest.read(begun, 202, 'run-start.json').run_id, isOver);
      expect(run, String(run.error)).to.include({ status: 'completed' });
      expect(run.final_draft).to.include('offline model');
      const gives = saved.output_schema !== undefined;
      expect(run.final_output !== null, 'has an output if its council has a schema').to.equal(gives);
    });
  }
});
