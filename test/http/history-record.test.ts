import { expect } from 'chai';
import { present } from '../../src/system/element.js';
import { nodeSystem } from '../../src/system/system.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, heldCouncil, scriptedModel } from '../support/scripted-model.js';

const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('GET /api/runs/{run_id}', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    const council = councilScript([5, 8]);
    const model = scriptedModel((request, index) =>
      request.promptInput.topic === 'Held' ? 'hold' : council(request, index),
    );
    service = await startService({ model });
    rest = restClient(service.url);
  });
  after(() => service.stop());

  const recordOf = async (runId: string) => rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');

  it('shows a completed run', async () => {
    const runId = await rest.start('Trees');
    await rest.until(runId, isOver);
    const record = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(record).to.include({
      id: runId,
      blueprint_id: null,
      input_topic: 'Trees',
      status: 'completed',
      execution_mode: 'auto-pilot',
      final_draft: 'Draft 3 by Writer',
      critic_score: 8,
      iteration_count: 2,
      error: null,
    });
    expect(record.created_at).to.match(ISO_UTC);
    expect(record.completed_at).to.match(ISO_UTC);
    expect(record.duration_ms).to.equal(Date.parse(record.completed_at ?? '') - Date.parse(record.created_at ?? ''));
  });

  it('shows the cost of a run, in total and by model, and its time in pauses', async () => {
    const runId = await rest.start('Trees');
    await rest.until(runId, isOver);
    const { usage, waited_ms: waitedMs } = await recordOf(runId);
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const calls = events.filter(({ type }) => type === 'NodeStarted').length;
    const tokens = { input_tokens: 10 * calls, output_tokens: 5 * calls };
    const unknown = { cached_input_tokens: null, reasoning_tokens: null, cost_usd: null };
    const cost = { ...tokens, ...unknown, calls, repeated_calls: 0, unmetered_calls: 0, unpriced_calls: calls };
    expect(usage).to.deep.equal({ ...cost, by_model: [{ model: 'scripted-1', ...cost }] });
    expect(waitedMs).to.equal(0);
    const held = await recordOf(await rest.start('Held'));
    expect(held).to.include({ duration_ms: null, waited_ms: 0 });
    expect(held.usage).to.include({
      input_tokens: null,
      output_tokens: null,
      calls: 1,
      unmetered_calls: 1,
      unpriced_calls: 1,
    });
  });

  it('counts the time in pauses once they have ended', async () => {
    await rest.post('/api/councils/', { id: 'one', name: 'One', nodes: [{ id: 'write' }] });
    const start = await rest.post('/api/councils/one/run', { input_topic: 'Trees', god_mode: true });
    const { run_id: runId } = rest.read(start, 202, 'run-start.json');
    await rest.until(runId, ({ status }) => status === 'paused');
    expect(await recordOf(runId)).to.include({ waited_ms: null, duration_ms: null });
    await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
    await rest.until(runId, isOver);
    const record = await recordOf(runId);
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const atOf = (type: string): number => Date.parse(events.find((each) => each.type === type)?.at ?? '');
    expect(record.waited_ms).to.equal(atOf('GateDecided') - atOf('RunPaused'));
    const [listed] = rest.read(await rest.get('/api/runs/?limit=1'), 200, 'history-list.json');
    expect({ ...listed, final_output: null }).to.deep.equal(record);
  });

  it('shows an end time for a cancelled run, but not for an unfinished one', async () => {
    const runId = await rest.start('Held');
    const running = rest.read(await rest.get(`/api/runs/${runId}/`), 200, 'history-record.json');
    expect(running).to.include({ status: 'running', completed_at: null });
    rest.read(await rest.post(`/api/councils/run/${runId}/cancel`), 200, 'run-result.json');
    const cancelled = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(cancelled).to.include({ status: 'failed', error: 'Cancelled by the user' });
    expect(cancelled.completed_at).to.match(ISO_UTC);
  });

  it('answers 404 naming the id of an unknown run', async () => {
    expect(rest.problem(await rest.get(`/api/runs/${NO_RUN}`), 404).detail).to.include(NO_RUN);
  });

  it('compares ids as text', async () => {
    const runId = await rest.start('Trees');
    const other = runId.toUpperCase();
    if (other !== runId) rest.problem(await rest.get(`/api/runs/${other}`), 404);
  });

  it('shows no negative duration or wait after the clock was set back', async () => {
    let backMs = 0;
    const system = { ...nodeSystem(), now: () => new Date(Date.now() - backMs).toISOString() };
    const model = heldCouncil();
    const setBack = await startService({ model, system });
    try {
      const client = restClient(setBack.url);
      const runId = await client.start('Trees');
      await model.called(1);
      backMs = 3_600_000;
      present(model.held[0], 'held call').release();
      await client.until(runId, isOver);
      const record = client.read(await client.get(`/api/runs/${runId}`), 200, 'history-record.json');
      expect(record.completed_at).to.equal(record.created_at);
      expect([record.duration_ms, record.waited_ms]).to.deep.equal([0, 0]);
      const [listed] = client.read(await client.get('/api/runs/?sort=duration'), 200, 'history-list.json');
      expect(listed?.duration_ms).to.equal(0);
      const estimate = client.read(await client.get('/api/estimate'), 200, 'estimate.json');
      expect(estimate.duration_ms.median).to.equal(0);
      const metrics = (await client.get('/metrics')).text;
      const figures = [...metrics.matchAll(/^(council_\w*seconds\w*(?:\{[^}]*\})?) (\S+)$/gm)];
      expect(figures.filter(([, , value]) => Number(value) < 0).map(([line]) => line)).to.deep.equal([]);
    } finally {
      await setBack.stop();
    }
  });
});
