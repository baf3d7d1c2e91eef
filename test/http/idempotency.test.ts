import { expect } from 'chai';
import { request } from 'node:http';
import { nodeSystem } from '../../src/system/system.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { keyedRunId } from '../../src/run/request.js';
import { runRequest } from '../support/open-engine.js';
import { openEventStream } from '../support/event-stream-client.js';
import { tempDir } from '../support/temp-dir.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

const START = '/api/councils/run';

describe('An Idempotency-Key', () => {
  let service: RunningService;
  let rest: RestClient;

  let runsBefore: number;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    rest = restClient(service.url);
  });
  beforeEach(async () => {
    runsBefore = await countAll();
  });
  after(() => service.stop());

  const start = (key: string, body: unknown = { input_topic: 'Trees' }, path = START): Promise<Reply> =>
    rest.post(path, body, { 'Idempotency-Key': key });
  const countAll = async (): Promise<number> =>
    rest.read(await rest.get('/api/runs/?limit=200'), 200, 'history-list.json').length;
  /** The runs of this test. */
  const countRuns = async (): Promise<number> => (await countAll()) - runsBefore;

  it('gives the same answer to the same request and starts one run', async () => {
    const first = await start('k-1');
    const second = await start('k-1');
    expect(rest.read(second, 202, 'run-start.json')).to.deep.equal(rest.read(first, 202, 'run-start.json'));
    expect(await countRuns()).to.equal(1);
  });

  it('compares bodies as JSON values', async () => {
    const headers = { 'Idempotency-Key': 'k-2', 'Content-Type': 'application/json' };
    const one = await rest.send('POST', START, { body: '{"input_topic":"é","god_mode":false,"x":1}', headers });
    const other = await rest.send('POST', START, {
      body: '{ "x": 1.0, "god_mode": false, "input_topic": "\\u00e9" }',
      headers,
    });
    expect(rest.read(other, 202, 'run-start.json')).to.deep.equal(rest.read(one, 202, 'run-start.json'));
  });

  for (const [what, body] of [
    ['another topic', { input_topic: 'Seas' }],
    ['another mode', { input_topic: 'Trees', god_mode: true }],
    ['an unknown field more', { input_topic: 'Trees', x: 1 }],
  ] as const) {
    it(`is refused with 409 when it is repeated with ${what}`, async () => {
      const key = what.replaceAll(' ', '-');
      rest.read(await start(key), 202, 'run-start.json');
      rest.problem(await start(key, body), 409);
      expect(await countRuns()).to.equal(1);
    });
  }

  for (const [what, body] of [
    ['a default spelled out', { input_topic: 'Trees', god_mode: false }],
    ['nulls', { input_topic: 'Trees', god_mode: null, budget: null, x: null }],
  ] as const) {
    it(`identifies the same request if it is repeated with ${what}`, async () => {
      const key = what.replaceAll(' ', '-');
      const first = rest.read(await start(key), 202, 'run-start.json');
      expect(rest.read(await start(key, body), 202, 'run-start.json')).to.deep.equal(first);
      const other = rest.read(await start(`${key}-2`, body), 202, 'run-start.json');
      expect(rest.read(await start(`${key}-2`), 202, 'run-start.json')).to.deep.equal(other);
      expect(await countRuns()).to.equal(2);
    });
  }

  it('finds a run that a version without a secret recorded, by the id that it gave', async () => {
    const { sha256 } = nodeSystem();
    const body = { input_topic: 'Trees' };
    const runId = keyedRunId({ method: 'POST', path: START, key: 'k-9' }, null, sha256);
    const hashes = { keyHash: sha256('k-9'), bodyHash: sha256(canonical(body)) };
    await service.context.registry.start({ ...runRequest(runId), ...hashes });
    expect(rest.read(await start('k-9', body), 202, 'run-start.json').run_id).to.equal(runId);
    rest.problem(await start('k-9', { input_topic: 'Rocks' }), 409);
    expect(await countRuns()).to.equal(1);
  });

  it('gives an id that does not follow from the key alone, and the secret is shown nowhere', async () => {
    const { sha256 } = nodeSystem();
    const runId = rest.read(await start('k-10'), 202, 'run-start.json').run_id;
    expect(runId).not.to.equal(keyedRunId({ method: 'POST', path: START, key: 'k-10' }, null, sha256));
    const secret = await service.context.authenticator.idSecret.read();
    const [all, about] = [`/api/runs/${runId}/events`, '/api/about'];
    const paths = [
      all,
      about,
      '/api/keys/events',
      '/api/runs/export?format=ndjson',
      '/metrics',
      `/api/runs/${runId}/state`,
    ];
    for (const path of paths) expect((await rest.get(path)).text, path).not.to.include(secret);
    const feed = openEventStream(service.url, '/api/feed');
    await feed.until(({ data }) => data.includes(runId));
    feed.leave();
    expect(JSON.stringify(feed.events)).not.to.include(secret);
  });

  it('is the same with and without a trailing slash', async () => {
    const first = rest.read(await start('k-4'), 202, 'run-start.json');
    expect(rest.read(await start('k-4', { input_topic: 'Trees' }, `${START}/`), 202, 'run-start.json')).to.deep.equal(
      first,
    );
  });

  it('with another value starts another run', async () => {
    const ids = await Promise.all(
      ['a', 'A', 'b'].map(async (key) => rest.read(await start(key), 202, 'run-start.json').run_id),
    );
    expect(new Set(ids).size).to.equal(3);
  });

  it('remains usable after a refused request', async () => {
    rest.problem(await start('k-5', { input_topic: '' }), 422);
    rest.read(await start('k-5'), 202, 'run-start.json');
  });

  it('gives the same answer after the run has ended', async () => {
    const { run_id: runId } = rest.read(await start('k-6'), 202, 'run-start.json');
    await rest.until(runId, ({ status }) => status === 'completed');
    expect(rest.read(await start('k-6'), 202, 'run-start.json')).to.include({ run_id: runId, status: 'pending' });
  });

  for (const key of ['!', 'x'.repeat(255)]) {
    it(`is accepted as "${key.slice(0, 40)}" (${key.length} characters)`, async () => {
      rest.read(await start(key), 202, 'run-start.json');
    });
  }

  for (const [what, key] of [
    ['empty', ''],
    ['256 characters', 'x'.repeat(256)],
    ['a letter outside ASCII', 'schlüssel'],
  ] as const) {
    it(`is refused with 422 as ${what}`, async () => {
      const { errors } = rest.problem(await start(key), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['header', 'Idempotency-Key']);
      expect(await countRuns()).to.equal(0);
    });
  }

  it('does not hide an empty budget: 422 comes before the 409 of another body', async () => {
    rest.read(await start('k-budget'), 202, 'run-start.json');
    const { errors } = rest.problem(await start('k-budget', { input_topic: 'Trees', budget: {} }), 422);
    expect(errors?.map(({ loc }) => loc.join('.'))).to.deep.equal(['body.budget']);
    rest.problem(await start('k-budget', { input_topic: 'Trees', budget: { tokens: 5 } }), 409);
  });

  it('is refused with 422 when it is sent twice', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = request(service.url + START, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': ['a', 'a'] },
      });
      sent.on('response', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('error', reject).end('{"input_topic":"x"}');
    });
    expect(status).to.equal(422);
  });
});

describe('An Idempotency-Key after a restart', () => {
  it('still finds its run, and refuses another body', async () => {
    const dir = tempDir();
    const send = async (url: string, topic: string): Promise<Reply> =>
      restClient(url).post(START, { input_topic: topic }, { 'Idempotency-Key': 'kept' });
    const first = await startService({ model: scriptedModel(), dataDir: dir.path });
    const before = await send(first.url, 'Trees');
    await first.stop();
    const second = await startService({ model: scriptedModel(), dataDir: dir.path });
    try {
      const rest = restClient(second.url);
      const after = await send(second.url, 'Trees');
      expect(rest.read(after, 202, 'run-start.json')).to.deep.equal(rest.read(before, 202, 'run-start.json'));
      rest.problem(await send(second.url, 'Seas'), 409);
      expect(rest.read(await rest.get('/api/runs'), 200, 'history-list.json')).to.have.length(1);
    } finally {
      await second.stop();
      dir.remove();
    }
  });
});
