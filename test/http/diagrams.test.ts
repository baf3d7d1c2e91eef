import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

const MERMAID = 'text/vnd.mermaid';
const COUNCIL = {
  id: 'board',
  name: 'Board',
  nodes: [{ id: 'write' }, { id: 'left' }, { id: 'right' }],
  edges: [
    { source: 'write', target: 'left' },
    { source: 'write', target: 'right' },
  ],
};

describe('Diagrams', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([5, 9])) });
    rest = restClient(service.url);
    runId = await rest.start();
    await rest.until(runId, isOver);
    expect((await rest.post('/api/councils/', COUNCIL)).status).to.equal(201);
  });
  after(() => service.stop());

  const paths = (): readonly string[] => [
    `/api/runs/${runId}/genealogy`,
    `/api/runs/${runId}/chart`,
    '/api/councils/board/chart',
  ];
  const accepting = (path: string, accept: string) => rest.send('GET', path, { headers: { Accept: accept } });

  it('include the genealogy of a run', async () => {
    const genealogy = rest.read(await rest.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
    const parents = genealogy.drafts.map(({ parents: { drafts, feedback } }) => [...drafts, ...feedback].join(' '));
    const [first, second] = genealogy.drafts.map(({ id }) => id);
    const [rework, approval] = genealogy.feedback.map(({ id }) => id);
    expect(parents).to.deep.equal(['', `${first} ${rework}`, `${second} ${rework} ${approval}`]);
    expect(genealogy.outcome?.final_draft).to.equal(genealogy.drafts[2]?.id);
  });

  it('include the chart of a run, at the head and after any event', async () => {
    const chart = rest.read(await rest.get(`/api/runs/${runId}/chart`), 200, 'chart.json');
    expect(chart.meta).to.include({ run_id: runId, value: 'completed' });
    expect(chart.states['completed']).to.deep.include({ tags: ['active'], type: 'final' });
    const earlier = rest.read(await rest.get(`/api/runs/${runId}/chart?at=3`), 200, 'chart.json');
    expect(earlier.meta).to.deep.include({ seq: 3, value: { running: 'n0' } });
    expect(earlier.states['running']?.states?.['n0']).to.deep.include({ tags: ['active'], description: 'Master' });
  });

  it('include the chart that a run of a saved council would have', async () => {
    const chart = rest.read(await rest.get('/api/councils/board/chart'), 200, 'chart.json');
    expect(chart.meta).to.deep.equal({ blueprint_id: 'board', version: 1 });
    expect(chart.states['running']).to.include({ type: 'parallel' });
    expect(JSON.stringify(chart)).not.to.include('tags');
  });

  it('are Mermaid for clients that request it in the query or prefer it in Accept, else JSON', async () => {
    for (const path of paths()) {
      const requested = await rest.get(`${path}?format=mermaid`);
      expect(requested.headers.get('Content-Type'), path).to.match(/^text\/vnd\.mermaid/);
      expect(requested.text).to.match(/^(stateDiagram-v2|flowchart TD)\n/);
      expect((await accepting(path, MERMAID)).text).to.equal(requested.text);
      expect((await accepting(`${path}/`, `${MERMAID}, application/json;q=0.5`)).text).to.equal(requested.text);
      expect((await accepting(`${path}?format=mermaid`, 'application/json')).text).to.equal(requested.text);
      const json = (await rest.get(path)).text;
      for (const accept of ['*/*', 'text/html', `application/json, ${MERMAID}`]) {
        const reply = await accepting(path, accept);
        expect(reply.text, accept).to.equal(json);
        expect(reply.headers.get('Vary')).to.equal('Accept');
      }
      expect((await accepting(`${path}?format=json`, MERMAID)).text).to.equal(json);
    }
  });

  it('are refused with 422 for an unknown format or an event that does not exist', async () => {
    for (const path of paths()) {
      for (const query of ['format=svg', 'format=', 'format=json&format=json', 'format=1']) {
        const { errors } = rest.problem(await rest.get(`${path}?${query}`), 422);
        expect(errors?.[0]?.loc, query).to.deep.equal(['query', 'format']);
      }
    }
    for (const at of ['-1', 'x', '', '1.5', '99', '0&at=1', '9007199254740993']) {
      const { errors } = rest.problem(await rest.get(`/api/runs/${runId}/chart?at=${at}`), 422);
      expect(errors?.[0]?.loc, at).to.deep.equal(['query', 'at']);
    }
  });

  it('get 404 for an unknown run or council, including reserved names', async () => {
    for (const path of [`/api/runs/${NO_RUN}/genealogy`, `/api/runs/${NO_RUN}/chart?at=3`]) {
      expect(rest.problem(await rest.get(path), 404).detail).to.include(NO_RUN);
    }
    for (const id of ['nobody', 'run', 'runs', 'validate', 'upload-pdf', '%00']) {
      rest.problem(await rest.get(`/api/councils/${id}/chart`), 404);
    }
    rest.problem(await rest.post('/api/councils/board/chart', {}), 405);
  });

  it('of an invalid council get 409 with the reason', async () => {
    const edges = [{ source: 'write', target: 'nowhere' }];
    await rest.post('/api/councils/', { ...COUNCIL, id: 'faulty', edges });
    expect(rest.problem(await rest.get('/api/councils/faulty/chart'), 409).detail).to.include('nowhere');
  });

  it('of a run that could not start have a chart without nodes', async () => {
    const start = rest.read(await rest.post('/api/councils/faulty/run', { input_topic: 'x' }), 202, 'run-start.json');
    const chart = rest.read(await rest.get(`/api/runs/${start.run_id}/chart`), 200, 'chart.json');
    expect(chart.meta.value).to.equal('failed');
    const genealogy = rest.read(await rest.get(`/api/runs/${start.run_id}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.outcome).to.include({ status: 'failed', kind: 'not_runnable' });
  });
});
