import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { BlueprintCreate, RunFacts } from '../../src/generated/schemas.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const TRY = '/api/councils/try';
const NODES: BlueprintCreate['nodes'] = [
  { id: 'write', model: 'gemini-2.5-pro', systemPrompt: 'Write verse.', colour: 'red' },
  { id: 'judge', type: 'critic' },
  { id: 'polish' },
];
const EDGES: BlueprintCreate['edges'] = [
  { source: 'write', target: 'judge' },
  { source: 'judge', target: 'write', type: 'conditional', condition: 'rework' },
  { source: 'judge', target: 'polish', type: 'conditional', condition: 'approve' },
];
const BODY = { input_topic: 'The sea', nodes: NODES, edges: EDGES };

describe('POST /api/councils/try', () => {
  let dir: TempDir;
  let service: RunningService;
  let rest: RestClient;
  let council: CouncilClient;
  let model: ScriptedModel;

  before(async () => {
    dir = tempDir();
    model = scriptedModel();
    await serve();
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  afterEach('the model of the service is not asked', () => expect(model.requests).to.deep.equal([]));

  async function serve(): Promise<void> {
    service = await startService({ dataDir: dir.path, model });
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
  }
  const started = (reply: Reply): string => rest.read(reply, 202, 'run-start.json').run_id;
  const request = async (runId: string): Promise<RunFacts['RunRequested']> => {
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events?limit=1`), 200, 'run-events-page.json');
    const data: unknown = events[0]?.data;
    return data as RunFacts['RunRequested'];
  };

  it('asks no model that a panel member, a juror or a fallback names', async () => {
    const members = [{ id: 'one', model: 'far/away', fallbacks: ['far/other'] }, 'far/third'];
    const nodes: BlueprintCreate['nodes'] = [
      { id: 'panel', type: 'panel', members, fallbacks: ['far/fourth'] },
      { id: 'rank', type: 'rank' },
      { id: 'jury', type: 'critic', members },
    ];
    const edges = [
      { source: 'panel', target: 'rank' },
      { source: 'rank', target: 'jury' },
    ];
    const run = await council.runs.tryBlueprint({ topic: 'The sea', blueprint: { name: 'Many', nodes, edges } });
    expect((await run.result()).status).to.equal('completed');
    const asked = new Set<unknown>();
    for await (const { type, data } of run.events()) if (type === 'NodeStarted') asked.add(data.model);
    expect([...asked]).to.deep.equal([(await request(run.id)).graph.nodes[0]?.model]);
    expect(JSON.stringify((await request(run.id)).graph)).to.not.include('far/');
  });

  it('runs the sent council with the offline model, whatever models its nodes name', async () => {
    const run = await council.runs.tryBlueprint({
      topic: 'The sea',
      blueprint: { name: 'Mine', nodes: NODES, edges: EDGES },
    });
    expect(run.started?.message).to.include('Mine').and.to.include('Auto-Pilot');
    const { status, final_draft: draft } = await run.result();
    expect(status).to.equal('completed');
    expect(draft).to.include('Written by the offline model');
    expect(await run.record()).to.include({ blueprint_id: null, execution_mode: 'auto-pilot', input_topic: 'The sea' });
    expect((await run.record()).usage?.by_model.map((each) => each.model)).to.deep.equal(['offline-1']);
    const { graph } = await request(run.id);
    expect(graph.nodes.map(({ id, model: name }) => [id, name])).to.deep.equal([
      ['write', 'offline-1'],
      ['judge', 'offline-1'],
      ['polish', 'offline-1'],
    ]);
    expect(graph.edges.map(({ condition }) => condition)).to.deep.equal([null, 'rework', 'approve']);
    expect(await run.verify()).to.include({ valid: true });
    expect((await council.blueprints.list()[Symbol.asyncIterator]().next()).done).to.equal(true);
  });

  it('pauses in God Mode, and uses the offline model also after a restart and in forks', async () => {
    const id = started(await rest.post(TRY, { ...BODY, god_mode: true }));
    await rest.until(id, ({ status }) => status === 'paused');
    await service.stop();
    await serve();
    const run = council.run(id);
    const pause = await run.pause();
    expect(pause?.state.blueprint).to.include({ id: null, name: 'Untitled' });
    const fork = await run.fork({ at: pause?.seq ?? 0, changes: { input_topic: 'The lake' } });
    await pause?.approve();
    await rest.until(id, ({ current_draft: draft }) => draft !== null);
    await (await fork.pause())?.approve();
    expect((await rest.until(fork.id, ({ current_draft: draft }) => draft !== null)).current_draft).to.include('lake');
    await Promise.all([run.cancel(), fork.cancel()]);
  });

  it('starts one run for each Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'try-1' };
    const first = started(await rest.post(TRY, BODY, headers));
    expect(started(await rest.post(TRY, { ...BODY, name: 'Untitled', god_mode: false }, headers))).to.equal(first);
    rest.problem(await rest.post(TRY, { ...BODY, name: 'Other' }, headers), 409);
    await rest.until(first, isOver);
  });

  it('refuses a council that cannot be saved, with 422, or 413 if it is too large', async () => {
    for (const change of [
      { input_topic: '' },
      { nodes: undefined },
      { nodes: [{}] },
      { nodes: [{ id: 'a' }, { id: 'a' }] },
      { nodes: [{ id: 'done' }] },
      { edges: [{ source: 'write' }] },
      { name: '' },
      { name: 'x'.repeat(256) },
      { god_mode: 'yes' },
      { approvals: { by: 'ann' } },
    ]) {
      rest.problem(await rest.post(TRY, { ...BODY, ...change }), 422);
    }
    const prompt = (length: number): object => ({ nodes: [{ id: 'a', systemPrompt: 'p'.repeat(length) }], edges: [] });
    rest.problem(await rest.post(TRY, { ...BODY, ...prompt(256 * 1024) }), 413);
    rest.problem(await rest.post(TRY, { ...BODY, ...prompt(1024 * 1024) }), 413);
    const large = { ...BODY, ...prompt(255 * 1024), input_topic: '€'.repeat(10_000) };
    await rest.until(started(await rest.post(TRY, large)), isOver);
  });

  it('does not hide a saved council with the id try', async () => {
    await council.blueprints.create({ id: 'try', name: 'Saved', nodes: [{ id: 'a', model: 'offline-1' }] });
    expect(await council.blueprints.get('try')).to.include({ name: 'Saved' });
    expect(await council.blueprints.update('try', { name: 'Changed' })).to.include({ version: 2 });
    expect((await rest.send('PATCH', TRY)).headers.get('Allow')).to.equal('DELETE, GET, HEAD, OPTIONS, POST, PUT');
    const run = await council.runs.start({ topic: 'Trees', blueprint: 'try' });
    expect(await run.result()).to.include({ status: 'completed' });
    expect(await run.record()).to.include({ blueprint_id: 'try' });
  });
});
