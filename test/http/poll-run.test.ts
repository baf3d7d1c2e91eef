import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';

describe('GET /api/councils/run/{run_id}', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  const house = sharedService({ modelMaxAttempts: 1, maxActiveRuns: 1 });

  beforeEach(async () => {
    model = scriptedModel(({ promptInput, answer }) => {
      if (promptInput.topic === 'Broken') return { error: new Error('the model is out of order') };
      if (promptInput.topic === 'Held') return 'hold';
      return { text: answer === 'draft' ? `Draft by ${promptInput.label}` : '{"score": 9, "feedback": "Good"}' };
    });
    service = await house.serve(model);
    rest = restClient(service.url);
  });

  it('shows a completed run with its draft, score and iterations', async () => {
    const runId = await rest.start();
    const { usage, ...result } = await rest.until(runId, isOver);
    expect(result).to.deep.equal({
      run_id: runId,
      status: 'completed',
      final_draft: 'Draft by Writer',
      final_output: null,
      critic_score: 9,
      iteration_count: 1,
      error: null,
      material_bytes: 0,
      paused: null,
      next_nodes: null,
      current_draft: null,
    });
    const record = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(usage).to.deep.equal(record.usage).and.to.include({ calls: 3, input_tokens: 30 });
  });

  it('shows a running run without results', async () => {
    const runId = await rest.start('Held');
    await model.called(1);
    expect(await rest.poll(runId)).to.include({
      status: 'running',
      final_draft: null,
      critic_score: null,
      iteration_count: null,
      error: null,
    });
  });

  it('shows a run that waits for admission as pending', async () => {
    await rest.start('Held');
    const waiting = await rest.start('Trees');
    expect((await rest.poll(waiting)).status).to.equal('pending');
  });

  it('shows a failed run and its error', async () => {
    const run = await rest.until(await rest.start('Broken'), isOver);
    expect(run).to.include({ status: 'failed', final_draft: null });
    expect(run.error).to.include('the model is out of order');
  });

  it('answers 404 naming the id of an unknown run', async () => {
    expect(rest.problem(await rest.get(`/api/councils/run/${NO_RUN}`), 404).detail).to.include(NO_RUN);
  });
});
