import { expect } from 'chai';
import { CHAPTER, report, script } from '../support/council-of-chapters.js';
import { approvePath } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

describe('The record of a run with councils', () => {
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    const model = scriptedModel((request, index) =>
      request.promptInput.material === 'Two' ? { error: new Error('no answer') } : script(request, index),
    );
    service = await startService({ model });
    rest = restClient(service.url);
    for (const body of [CHAPTER, report({ on_error: 'skip', max_parallel: 1 })])
      expect((await rest.post('/api/councils/', body)).status).to.equal(201);
  });
  afterEach(() => service.stop());

  async function start(body: object = {}): Promise<string> {
    const reply = await rest.post('/api/councils/report/run', { input_topic: 'Trees', ...body });
    return rest.read(reply, 202, 'run-start.json').run_id;
  }
  async function childrenOf(runId: string): Promise<readonly string[]> {
    const runs = rest.read(await rest.get(`/api/runs/?parent_run=${runId}&sort=created_at`), 200, 'history-list.json');
    return runs.map(({ id }) => id);
  }
  const genealogyOf = async (runId: string) =>
    rest.read(await rest.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
  const text = async (path: string): Promise<string> => (await rest.get(path)).text;

  it('names them in its genealogy and in the diagram, with their ends', async () => {
    const runId = await start();
    await rest.until(runId, isOver);
    const [one = '', two = '', three = ''] = await childrenOf(runId);
    const { children = [], drafts } = await genealogyOf(runId);
    const about = { node: 'chapters', step: 2 };
    expect(children.map(({ seq: _, ...child }) => child)).to.deep.equal([
      { id: one, ...about, index: 0, title: 'One', status: 'completed' },
      { id: two, ...about, index: 1, title: 'Two', status: 'failed' },
      { id: three, ...about, index: 2, title: 'Three', status: 'completed' },
    ]);
    const draft = drafts.find(({ node }) => node === 'chapters');
    expect(draft?.model).to.equal(null);
    const diagram = await text(`/api/runs/${runId}/genealogy?format=mermaid`);
    const runs = `${children[0]?.seq} chapters, 3 runs<br/>0 One, completed<br/>1 Two, failed<br/>2 Three, completed`;
    expect(diagram).to.include(`  c2[["${runs}"]]\n  c2 -.-> ${draft?.id}\n`);
    expect(await genealogyOf(one)).not.to.have.property('children');
  });

  it('names in that of a fork also the runs that the fork has reused', async () => {
    const runId = await start();
    await rest.until(runId, isOver);
    const [one = ''] = await childrenOf(runId);
    const { children = [] } = await genealogyOf(runId);
    const at = (children[1]?.seq ?? 0) - 1;
    const fork = rest.read(await rest.post(`/api/runs/${runId}/fork`, { at }), 202, 'run-start.json').run_id;
    await rest.until(fork, isOver);
    const forked = (await genealogyOf(fork)).children ?? [];
    expect(forked.map(({ index, status }) => [index, status])).to.deep.equal([
      [0, 'completed'],
      [1, 'failed'],
      [2, 'completed'],
    ]);
    expect(forked[0]).to.deep.include({ id: one, seq: 0 });
  });

  it('shows which council a node of the chart runs', async () => {
    const runId = await start();
    await rest.until(runId, isOver);
    for (const path of [`/api/runs/${runId}/chart`, '/api/councils/report/chart']) {
      expect(await text(`${path}?format=mermaid`)).to.match(/state "chapters .*council chapter.*" as n1/);
      expect(await text(path)).to.include('{"node":"chapters","role":"council","council":"chapter"}');
    }
  });

  it('marks files with their ids, models, approvals and the changes of people', async () => {
    const runId = await start({ god_mode: true });
    let changed = false;
    const decide = async (id: string): Promise<void> => {
      const run = await rest.poll(id);
      if (run.paused !== true) return;
      const isChild = run.parent_run !== undefined && !changed;
      changed ||= isChild;
      const change = isChild
        ? { action: 'modify', modified_state: { current_draft: 'By a person' } }
        : { action: 'approve' };
      await rest.post(approvePath(id), change);
    };
    while (!isOver(await rest.poll(runId))) for (const id of [runId, ...(await childrenOf(runId))]) await decide(id);
    const draft = await text(`/api/runs/${runId}/draft?front_matter=1`);
    expect(draft).to.match(/^models: \["[^",]+"\]$/m);
    expect(draft).to.include('compositeWithTrainedAlgorithmicMedia');
    expect(draft.match(/"by":"a person"/g)).to.have.length(6);
  });
});
