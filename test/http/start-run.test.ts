import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('POST /api/councils/run', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([8])) });
    rest = restClient(service.url);
  });
  after(() => service.stop());

  const start = (body: unknown): ReturnType<RestClient['post']> => rest.post('/api/councils/run', body);

  it('answers 202 with the id of a pending run and the path of its channel', async () => {
    const begun = rest.read(await start({ input_topic: 'Trees' }), 202, 'run-start.json');
    expect(begun.run_id).to.match(UUID_V4);
    expect(begun.message).to.include(begun.run_id).and.to.include(`/ws/council/${begun.run_id}`);
  });

  it('shows the run at once in poll, record and list', async () => {
    const runId = await rest.start('Seen at once');
    expect((await rest.poll(runId)).run_id).to.equal(runId);
    expect(rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json').input_topic).to.equal(
      'Seen at once',
    );
    const list = rest.read(await rest.get('/api/runs/?limit=1'), 200, 'history-list.json');
    expect(list.map(({ id }) => id)).to.deep.equal([runId]);
  });

  it('accepts god_mode and ignores it', async () => {
    const begun = rest.read(await start({ input_topic: 'Trees', god_mode: true }), 202, 'run-start.json');
    const run = await rest.until(begun.run_id, isOver);
    expect(run).to.include({ status: 'completed', paused: null, next_nodes: null, current_draft: null });
    const record = rest.read(await rest.get(`/api/runs/${begun.run_id}`), 200, 'history-record.json');
    expect(record.execution_mode).to.equal('auto-pilot');
  });

  it('ignores unknown fields, including names of inherited properties', async () => {
    const body = { input_topic: 'Trees', run_id: 'mine', constructor: { prototype: {} }, toString: 1, nested: [[{}]] };
    rest.read(await start(body), 202, 'run-start.json');
  });

  it('treats god_mode null as absent', async () => {
    rest.read(await start({ input_topic: 'Trees', god_mode: null }), 202, 'run-start.json');
  });

  it('keeps the topic unchanged', async () => {
    const topic = ' \t \u0000 é e\u0301 👩‍👩‍👧 \n';
    const record = rest.read(await rest.get(`/api/runs/${await rest.start(topic)}`), 200, 'history-record.json');
    expect(record.input_topic).to.equal(topic);
  });

  for (const [what, topic] of [
    ['one character', 'x'],
    ['10000 characters of two code units each', '🌳'.repeat(10_000)],
  ] as const) {
    it(`accepts a topic of ${what}`, async () => {
      rest.read(await start({ input_topic: topic }), 202, 'run-start.json');
    });
  }

  for (const [what, body, loc, type] of [
    ['no topic', {}, 'input_topic', 'missing'],
    ['a topic that is null, which counts as absent', { input_topic: null }, 'input_topic', 'missing'],
    ['a topic that is a number', { input_topic: 5 }, 'input_topic', 'string_type'],
    ['an empty topic', { input_topic: '' }, 'input_topic', 'string_too_short'],
    ['10001 characters of two code units each', { input_topic: '🌳'.repeat(10_001) }, 'input_topic', 'string_too_long'],
    ['god_mode as text', { input_topic: 'x', god_mode: 'true' }, 'god_mode', 'bool_type'],
  ] as const) {
    it(`refuses ${what} with 422`, async () => {
      const { detail, errors } = rest.problem(await start(body), 422);
      expect(errors?.map((error) => [error.loc, error.type])).to.deep.equal([[['body', loc], type]]);
      expect(detail).to.include(`body.${loc}`);
    });
  }

  it('reports every broken rule in one answer', async () => {
    const { errors } = rest.problem(await start({ input_topic: '', god_mode: 0 }), 422);
    expect(errors?.map(({ type }) => type)).to.have.members(['string_too_short', 'bool_type']);
  });

  it('records nothing for a refused request', async () => {
    const count = async (): Promise<number> =>
      rest.read(await rest.get('/api/runs/?limit=200'), 200, 'history-list.json').length;
    const before = await count();
    rest.problem(await start({ input_topic: '' }), 422);
    expect(await count()).to.equal(before);
  });

  it('has logged no fault', () => {
    expect(service.faults).to.deep.equal([]);
  });
});
