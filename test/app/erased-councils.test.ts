import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { CHAPTER, OUTLINE, holding, report } from '../support/council-of-chapters.js';
import { filesWith } from '../support/files-with.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Script, ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const WORD = 'zyxcanaryword';
const OUTER = { id: 'outer', name: 'Outer', nodes: [{ id: 'inner', type: 'council', council: 'report' }] };
const DAY_MS = 86_400_000;

describe('The erasure of a run with councils', () => {
  let dir: TempDir;
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  let isHeld: boolean;

  async function serve(options: ServiceOverrides = {}): Promise<void> {
    const chapters = holding(() => isHeld);
    const script: Script = (request, index) =>
      request.promptInput.label === 'Outline' ? { text: `${OUTLINE} ${WORD}` } : chapters(request, index);
    model = scriptedModel(script);
    service = await startService({ dataDir: dir.path, model, ...options });
    rest = restClient(service.url);
  }

  beforeEach(async () => {
    dir = tempDir();
    isHeld = false;
    await serve();
    for (const body of [{ ...CHAPTER, retentionDays: 1 }, report({ max_parallel: 1 }), OUTER])
      expect((await rest.post('/api/councils/', body)).status).to.equal(201);
  });
  afterEach(async () => {
    await service.stop();
    dir.remove();
  });

  async function start(id: string): Promise<string> {
    const reply = await rest.post(`/api/councils/${id}/run`, { input_topic: `About ${WORD}` });
    return rest.read(reply, 202, 'run-start.json').run_id;
  }

  async function childrenOf(runId: string): Promise<readonly string[]> {
    const runs = rest.read(await rest.get(`/api/runs/?parent_run=${runId}`), 200, 'history-list.json');
    return runs.map(({ id }) => id);
  }

  /** An ended run with the four runs below it. */
  async function tree(): Promise<readonly string[]> {
    const runId = await start('outer');
    await rest.until(runId, isOver);
    const [inner = ''] = await childrenOf(runId);
    return [runId, inner, ...(await childrenOf(inner))];
  }

  const erase = (runId: string) => rest.send('DELETE', `/api/runs/${runId}`, { body: { reason: 'asked' } });
  const statusOf = async (runId: string): Promise<number> => (await rest.get(`/api/runs/${runId}`)).status;
  const statuses = (runs: readonly string[]): Promise<readonly number[]> => Promise.all(runs.map(statusOf));

  it('erases the runs that its councils have started, so that no byte of its texts is left', async () => {
    const runs = await tree();
    expect(runs).to.have.length(5);
    expect((await erase(runs[0] ?? '')).status).to.equal(204);
    expect(await statuses(runs)).to.deep.equal([410, 410, 410, 410, 410]);
    expect(rest.problem(await rest.get(`/api/runs/${runs[4]}`), 410).erased).to.deep.include({ reason: 'asked' });
    expect((await erase(runs[0] ?? '')).status).to.equal(204);
    await service.stop();
    expect(filesWith(dir.path, WORD)).to.deep.equal([]);
    await serve();
  });

  it('is refused for a run whose parent has not ended, and then takes it alone', async () => {
    isHeld = true;
    const runId = await start('report');
    await model.called(2);
    model.held[0]?.release('One');
    await model.called(3);
    const children = await childrenOf(runId);
    const ended = children.at(-1) ?? '';
    expect((await rest.poll(ended)).status).to.equal('completed');
    expect(rest.problem(await erase(ended), 409).detail).to.include(runId);
    rest.problem(await erase(runId), 409);
    expect(await statusOf(ended)).to.equal(200);
    await rest.post(`/api/councils/run/${runId}/cancel`);
    await rest.until(runId, isOver);
    expect((await erase(ended)).status).to.equal(204);
    expect(await statuses([runId, ended])).to.deep.equal([200, 410]);
    await untilTrue(async () => (await erase(runId)).status === 204);
    expect(await statuses(children)).to.deep.equal(children.map(() => 410));
  });

  it('comes with the retention of the parent, not with that of their own council', async () => {
    const runs = await tree();
    const inDays = async (days: number): Promise<void> => {
      await service.stop();
      const now = (): string => new Date(Date.now() + days * DAY_MS).toISOString();
      await serve({ retentionDays: 30, system: { ...nodeSystem(), now } });
    };
    await inDays(10);
    const other = await start('chapter');
    await rest.until(other, isOver);
    await inDays(12);
    // The children are older, so the same look would have taken them.
    await untilTrue(async () => (await statusOf(other)) === 410);
    expect(await statuses(runs)).to.deep.equal([200, 200, 200, 200, 200]);
    await inDays(31);
    await untilTrue(async () => (await statusOf(runs[0] ?? '')) === 410);
    expect(await statuses(runs)).to.deep.equal([410, 410, 410, 410, 410]);
  });
});
