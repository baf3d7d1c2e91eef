import { expect } from 'chai';
import { once } from 'node:events';
import { request } from 'node:http';
import { ModelFailed } from '../../src/errors.js';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { approvePath } from '../support/god-run.js';
import { addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import type { Family } from '../support/prometheus-text.js';
import { parseMetrics, valueOf } from '../support/prometheus-text.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const TOPIC = 'Should our town build a sauna?';

const COUNCIL = {
  name: 'Pair',
  nodes: [
    { id: 'writer', type: 'agent', label: 'Writer' },
    { id: 'critic', type: 'critic', label: 'Critic' },
  ],
  edges: [{ source: 'writer', target: 'critic' }],
};

async function scrape(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ReadonlyMap<string, Family>> {
  const reply = await fetch(`${url}/metrics`, { headers });
  expect(reply.status).to.equal(200);
  expect(reply.headers.get('Content-Type')).to.equal('text/plain; version=0.0.4; charset=utf-8');
  return parseMetrics(await reply.text());
}

describe('The metrics', () => {
  let service: RunningService;
  const begin = async (...given: Parameters<typeof startService>): Promise<ReturnType<typeof restClient>> => {
    service = await startService(...given);
    return restClient(service.url);
  };
  afterEach(() => service.stop());

  it('count runs, nodes and calls of this instance, and no cost of the offline model', async () => {
    const rest = await begin();
    for (const runId of [await rest.start(TOPIC), await rest.start(TOPIC)])
      await rest.until(runId, ({ status }) => status === 'completed');
    const metrics = await scrape(service.url);
    const value = (name: string, labels = {}): number => valueOf(metrics, name, labels);
    expect(value('council_runs_started_total')).to.equal(2);
    expect(value('council_runs_ended_total', { status: 'completed' })).to.equal(2);
    expect(value('council_runs_ended_total', { status: 'failed' })).to.equal(0);
    expect(value('council_run_duration_seconds_count', { status: 'completed' })).to.equal(2);
    const answered = value('council_model_calls_total', { provider: 'offline', outcome: 'answered' });
    expect(answered).to.be.above(2);
    expect(value('council_model_calls_total')).to.equal(answered);
    expect(value('council_model_call_duration_seconds_count')).to.equal(answered);
    const critics = value('council_node_duration_seconds_count', { role: 'critic' });
    expect(critics).to.be.within(2, answered - 2);
    expect(value('council_node_duration_seconds_count')).to.equal(answered);
    expect(value('council_model_cost_usd_total')).to.equal(0);
    expect(value('council_log_append_duration_seconds_count')).to.be.above(4);
    expect(value('council_runs_active')).to.equal(0);
    expect(value('council_projection_lag_seconds')).to.be.within(0, 60);
  });

  it('show the calls to models that wait for a slot', async () => {
    const model = scriptedModel(() => 'hold');
    const rest = await begin({ model, maxModelCalls: 1 });
    await rest.start(TOPIC);
    await model.called(1);
    await rest.start(TOPIC);
    await untilTrue(async () => valueOf(await scrape(service.url), 'council_model_calls_waiting') === 1);
    expect(valueOf(await scrape(service.url), 'council_model_calls_in_flight')).to.equal(1);
  });

  it('report the process and its event loop', async () => {
    await begin();
    const metrics = await scrape(service.url);
    expect(valueOf(metrics, 'process_resident_memory_bytes')).to.be.above(1_000_000);
    // As promtool asks.
    for (const { name, type } of metrics.values()) expect(name.endsWith('_total'), name).to.equal(type === 'counter');
    expect([...metrics.keys()]).to.include.members(['nodejs_eventloop_lag_p99_seconds', 'process_cpu_seconds_total']);
  });

  it('count failed calls and runs by the kind of the failure', async () => {
    const failure = new ModelFailed('No', { kind: 'unauthorized', retryable: false });
    const rest = await begin({ model: scriptedModel(() => ({ error: failure })) });
    await rest.until(await rest.start(), ({ status }) => status === 'failed');
    const metrics = await scrape(service.url);
    // No model gets a label before it has answered: clients may name any model.
    const failed = { provider: 'scripted', model: 'other', outcome: 'unauthorized' };
    expect(valueOf(metrics, 'council_model_calls_total', failed)).to.equal(1);
    expect(valueOf(metrics, 'council_runs_ended_total', { status: 'failed' })).to.equal(1);
  });

  it('show runs that wait for a human, calls in flight, sockets and streams, while there are any', async () => {
    const model = scriptedModel((asked, index) => (index === 0 ? 'hold' : councilScript([8])(asked, index - 1)));
    const rest = await begin({ model, maxActiveRuns: 1 });
    const runId = await rest.start(TOPIC);
    await model.called(1);
    const pending = await rest.start(TOPIC);
    const channel = openChannel(service.url, `/ws/council/${runId}`);
    const stream = openEventStream(service.url, `/api/runs/${runId}/stream`);
    await channel.until(({ event }) => event === 'connected');
    await stream.until(({ event }) => event === 'RunStarted');
    let metrics = await scrape(service.url);
    const value = (name: string, labels = {}): number => valueOf(metrics, name, labels);
    expect(value('council_runs_active')).to.equal(1);
    expect(value('council_runs_queued')).to.equal(1);
    expect(value('council_runs_unfinished', { status: 'running' })).to.equal(1);
    expect(value('council_runs_unfinished', { status: 'pending' })).to.equal(1);
    expect(value('council_model_calls_in_flight', { provider: 'scripted' })).to.equal(1);
    expect(value('council_sockets_open')).to.equal(1);
    expect(value('council_event_streams_open')).to.equal(1);
    model.held[0]?.release();
    for (const id of [runId, pending]) await rest.until(id, ({ status }) => status === 'completed');
    await untilTrue(async () => {
      metrics = await scrape(service.url);
      return value('council_sockets_open') + value('council_event_streams_open') + value('council_runs_active') === 0;
    });
    // Still reported: a line that ends looks like one that is not known.
    const inFlight = metrics.get('council_model_calls_in_flight')?.samples.map((sample) => sample.value);
    expect(inFlight).to.deep.equal([0]);
  });

  it('show the waiting approvals of all instances, and count each decision where it is made', async () => {
    const folder = tempDir();
    try {
      const first = await startService({ dataDir: folder.path });
      const rest = restClient(first.url);
      const created = rest.read(await rest.post('/api/councils/', COUNCIL), 201, 'blueprint.json');
      const start = `/api/councils/${created.id}/run`;
      const body = { input_topic: TOPIC, god_mode: true };
      const runId = rest.read(await rest.post(start, body), 202, 'run-start.json').run_id;
      await rest.until(runId, ({ status }) => status === 'paused');
      await first.stop();
      // Another instance on the same log: it has started no run.
      const again = await begin({ dataDir: folder.path });
      let metrics = await scrape(service.url);
      const value = (name: string, labels = {}): number => valueOf(metrics, name, labels);
      expect(value('council_runs_started_total')).to.equal(0);
      expect(value('council_approvals_waiting')).to.equal(1);
      expect(value('council_approvals_oldest_wait_seconds')).to.be.above(0);
      await again.post(approvePath(runId), { action: 'reject' });
      metrics = await scrape(service.url);
      expect(value('council_approvals_waiting')).to.equal(0);
      expect(value('council_approvals_oldest_wait_seconds')).to.equal(0);
      expect(value('council_pause_duration_seconds_count', { action: 'reject' })).to.equal(1);
      expect(value('council_runs_ended_total', { status: 'failed' })).to.equal(1);
      await service.stop();
    } finally {
      folder.remove();
    }
  });

  it('contain no run, topic or key', async () => {
    await begin();
    const key = await addFirstKey(service.url, undefined, 'margaret');
    const rest = restWith(service.url, key);
    const runId = await rest.start(TOPIC);
    await rest.until(runId, ({ status }) => status === 'completed');
    const page = await (await fetch(`${service.url}/metrics`, { headers: bearer(key) })).text();
    for (const hidden of [runId, 'sauna', 'margaret', key]) expect(page).not.to.include(hidden);
  });
});

describe('Access to the metrics', () => {
  const TOKEN = 'scraper-7f3a';
  let service: RunningService;
  afterEach(() => service.stop());

  /** The status with any Host, which fetch does not send. */
  async function statusAs(headers: Readonly<Record<string, string>>): Promise<number> {
    const asking = request(`${service.url}/metrics`, { headers, agent: false }).end();
    const [reply] = (await once(asking, 'response')) as [{ statusCode: number; resume: () => void }];
    reply.resume();
    return reply.statusCode;
  }
  const foreign = { Host: 'council-2:8000' };

  it('is open under an own Host while there are neither token nor keys', async () => {
    service = await startService();
    expect(await statusAs({})).to.equal(200);
    expect(await statusAs({ Authorization: 'Bearer ' })).to.equal(200);
    expect(await statusAs(foreign)).to.equal(421);
  });

  it('needs the token once it is set, and accepts any Host with it', async () => {
    service = await startService({ metricsToken: TOKEN });
    expect(await statusAs({})).to.equal(401);
    expect(await statusAs(bearer('another'))).to.equal(401);
    expect(await statusAs(foreign)).to.equal(421);
    expect(await statusAs({ ...foreign, ...bearer('another') })).to.equal(421);
    expect(await statusAs(bearer(TOKEN))).to.equal(200);
    expect(await statusAs({ ...foreign, ...bearer(TOKEN) })).to.equal(200);
    // The token opens nothing else, and closes nothing else.
    expect((await fetch(`${service.url}/api/runs/`)).status).to.equal(200);
  });

  it('accepts the token or a key with the scope read once keys exist', async () => {
    service = await startService({ metricsToken: TOKEN });
    const first = await addFirstKey(service.url);
    const rest = restWith(service.url, first);
    const reader = await addKey(rest, { name: 'reader', scopes: ['read'] });
    const runner = await addKey(rest, { name: 'runner', scopes: ['run'] });
    expect(await statusAs(bearer(TOKEN))).to.equal(200);
    expect(await statusAs(bearer(reader))).to.equal(200);
    expect(await statusAs(bearer(runner))).to.equal(403);
    expect(await statusAs({})).to.equal(401);
    expect((await fetch(`${service.url}/api/runs/`, { headers: bearer(TOKEN) })).status).to.equal(401);
  });
});
