import { expect } from 'chai';
import { checkRecord, factsOf } from '../support/record-of.js';
import { documentsIn } from '../support/reading-council.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const OAKS = pdfWith(['Oaks are tall trees.']);
const ELMS = pdfWith(['Elms are tall trees.']);
const LIMES = pdfWith(['Limes are tall trees.']);
const [OAK, ELM, LIME] = [idOf(OAKS), idOf(ELMS), idOf(LIMES)];
const UNKNOWN = 'f'.repeat(64);

describe('The documents of a run', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;

  before(async () => {
    service = await startService({ model: { ...scriptedModel(), ask: (request, call) => model.ask(request, call) } });
    rest = restClient(service.url);
    for (const [index, bytes] of [OAKS, ELMS, LIMES].entries()) await uploaded(service.url, bytes, `${index}.pdf`);
    const nodes = [{ id: 'reader', tools: { pdfReader: true } }];
    const council = { id: 'readers', name: 'Readers', nodes, documents: [OAK, ELM] };
    const saved = rest.read(await rest.post('/api/councils/', council), 201, 'blueprint.json');
    expect(saved.documents).to.deep.equal([OAK, ELM]);
    rest.read(await rest.post('/api/councils/', { ...council, id: 'all', documents: null }), 201, 'blueprint.json');
  });
  beforeEach(() => {
    const call = asks(['pdf_reader', { query: 'tall trees', top_k: 20 }]);
    model = scriptedModel(({ rounds = [] }) => (rounds.length === 0 ? call : { text: 'Done' }));
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  const foundBy = async (runId: string): Promise<readonly string[]> => {
    expect((await rest.until(runId, isOver)).status).to.equal('completed');
    const [called] = factsOf(await checkRecord(service.context.log, runId), 'ToolCalled');
    return documentsIn(called?.hits);
  };
  const found = async (body: object, path = '/api/councils/all/run'): Promise<readonly string[]> => {
    const reply = await rest.post(path, { input_topic: 'Trees', ...body });
    return await foundBy(rest.read(reply, 202, 'run-start.json').run_id);
  };

  it('are all documents without a list, or those of the blueprint, or those of the start in their place', async () => {
    expect(await found({})).to.deep.equal([OAK, ELM, LIME].sort());
    expect(await found({ documents: [LIME] })).to.deep.equal([LIME]);
    expect(await found({}, '/api/councils/readers/run')).to.deep.equal([OAK, ELM].sort());
    expect(await found({ documents: [LIME] }, '/api/councils/readers/run')).to.deep.equal([LIME]);
    const nodes = [{ id: 'reader', tools: { pdfReader: true } }];
    expect(await found({ nodes, documents: [ELM] }, '/api/councils/try')).to.deep.equal([ELM]);
  });

  it('stay those of the parent in a fork, unless it changes them', async () => {
    const reply = await rest.post('/api/councils/all/run', { input_topic: 'Trees', documents: [LIME] });
    const parent = rest.read(reply, 202, 'run-start.json').run_id;
    await rest.until(parent, isOver);
    const fork = async (changes: object): Promise<readonly string[]> => {
      const forked = await rest.post(`/api/runs/${parent}/fork`, { at: 2, changes });
      return await foundBy(rest.read(forked, 202, 'run-start.json').run_id);
    };
    expect(await fork({})).to.deep.equal([LIME]);
    expect(await fork({ documents: [OAK] })).to.deep.equal([OAK]);
    expect(await fork({ documents: [] })).to.have.lengthOf(3);
  });

  it('are refused if one is unknown, and if there are more than 100', async () => {
    for (const path of ['/api/councils/run', '/api/councils/readers/run']) {
      const body = { input_topic: 'Trees', documents: [OAK, UNKNOWN] };
      const problem = rest.problem(await rest.post(path, body), 422);
      expect(problem.errors).to.deep.equal([
        { loc: ['body', 'documents', 1], msg: 'No such document', type: 'unknown' },
      ]);
    }
    const council = { name: 'x', nodes: [{ id: 'a' }], documents: [UNKNOWN] };
    expect(rest.problem(await rest.post('/api/councils/', council), 422).errors?.[0]?.loc).to.deep.equal([
      ...['body', 'documents', 0],
    ]);
    const many = { input_topic: 'Trees', documents: Array.from({ length: 101 }, () => OAK) };
    expect(rest.problem(await rest.post('/api/councils/run', many), 422).errors?.[0]?.loc).to.deep.equal([
      ...['body', 'documents'],
    ]);
  });

  it('are not found any more once they are deleted, and the run goes on', async () => {
    let release: () => void = () => undefined;
    const deleted = new Promise<void>((resolve) => (release = resolve));
    const { ask } = model;
    model = {
      ...model,
      async ask(request, call) {
        await deleted;
        return await ask.call(model, request, call);
      },
    };
    const reply = await rest.post('/api/councils/all/run', { input_topic: 'Trees', documents: [LIME, OAK] });
    const runId = rest.read(reply, 202, 'run-start.json').run_id;
    expect((await rest.send('DELETE', `/api/documents/${LIME}`)).status).to.equal(204);
    release();
    expect(await foundBy(runId)).to.deep.equal([OAK]);
  });

  it('may be deleted before a start is repeated by its Idempotency-Key', async () => {
    const bytes = pdfWith(['Yews are tall trees.']);
    await uploaded(service.url, bytes, 'yew.pdf');
    const body = { input_topic: 'Trees', documents: [idOf(bytes)] };
    const key = { 'Idempotency-Key': 'yews' };
    const started = rest.read(await rest.post('/api/councils/all/run', body, key), 202, 'run-start.json');
    expect((await rest.send('DELETE', `/api/documents/${idOf(bytes)}`)).status).to.equal(204);
    const repeated = rest.read(await rest.post('/api/councils/all/run', body, key), 202, 'run-start.json');
    expect(repeated).to.deep.equal(started);
  });

  it('may be sent back unchanged in a council after one was deleted, which starts as before', async () => {
    const bytes = pdfWith(['Firs are tall trees.']);
    await uploaded(service.url, bytes, 'fir.pdf');
    const council = { id: 'firs', name: 'Firs', nodes: [{ id: 'reader', tools: { pdfReader: true } }] };
    const documents = [idOf(bytes), OAK];
    rest.read(await rest.post('/api/councils/', { ...council, documents }), 201, 'blueprint.json');
    expect((await rest.send('DELETE', `/api/documents/${idOf(bytes)}`)).status).to.equal(204);
    const change = { name: 'Tall firs', documents };
    const saved = rest.read(await rest.send('PUT', '/api/councils/firs', { body: change }), 200, 'blueprint.json');
    expect([saved.name, saved.documents]).to.deep.equal(['Tall firs', documents]);
    expect(await found({}, '/api/councils/firs/run')).to.deep.equal([OAK]);
    const other = { documents: [...documents, UNKNOWN] };
    const problem = rest.problem(await rest.send('PUT', '/api/councils/firs', { body: other }), 422);
    expect(problem.errors?.map(({ loc }) => loc)).to.deep.equal([['body', 'documents', 2]]);
  });
});
