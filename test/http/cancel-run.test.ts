import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';

describe('POST /api/councils/run/{run_id}/cancel', () => {
  let rest: RestClient;
  let model: ScriptedModel;
  const house = sharedService({ maxActiveRuns: 1 });

  beforeEach(async () => {
    model = scriptedModel(({ promptInput, answer }) => {
      if (promptInput.topic === 'Held') return 'hold';
      return { text: answer === 'draft' ? 'Draft' : '{"score": 9, "feedback": "Good"}' };
    });
    rest = restClient((await house.serve(model)).url);
  });

  const pathOf = (runId: string): string => `/api/councils/run/${runId}/cancel`;
  const cancel = (runId: string): ReturnType<RestClient['post']> => rest.post(pathOf(runId));

  it('fails a running run and aborts its call of the model', async () => {
    const runId = await rest.start('Held');
    await model.called(1);
    const run = rest.read(await cancel(runId), 200, 'run-result.json');
    expect(run).to.include({ run_id: runId, status: 'failed', error: 'Cancelled by the user', final_draft: null });
    expect(model.held[0]?.signal.aborted).to.be.true;
    expect(await rest.poll(runId)).to.deep.equal(run);
  });

  it('answers 409 for a run that has completed or was cancelled before', async () => {
    const completed = await rest.start();
    await rest.until(completed, ({ status }) => status === 'completed');
    expect(rest.problem(await cancel(completed), 409).detail)
      .to.include(completed)
      .and.include('completed');
    const cancelled = await rest.start('Held');
    rest.read(await cancel(cancelled), 200, 'run-result.json');
    expect(rest.problem(await cancel(cancelled), 409).detail).to.include('failed');
  });

  it('answers 404 naming the id of an unknown run', async () => {
    for (const runId of [NO_RUN, 'nothing']) {
      expect(rest.problem(await cancel(runId), 404).detail).to.include(runId);
    }
  });

  for (const [what, sent] of [
    ['no body', {}],
    ['an empty JSON body', { body: '', headers: { 'Content-Type': 'application/json' } }],
    ['an object with unknown fields', { body: { reason: 'changed my mind', note: null } }],
  ] as const) {
    it(`accepts ${what}`, async () => {
      rest.read(await rest.send('POST', pathOf(await rest.start('Held')), sent), 200, 'run-result.json');
    });
  }

  for (const [what, sent, status] of [
    ['text', { body: 'stop', headers: { 'Content-Type': 'text/plain' } }, 415],
    ['what is no JSON', { body: '{', headers: { 'Content-Type': 'application/json' } }, 422],
  ] as const) {
    it(`refuses ${what} with ${status} without cancelling the run`, async () => {
      const runId = await rest.start('Held');
      await model.called(1);
      rest.problem(await rest.send('POST', pathOf(runId), sent), status);
      expect((await rest.poll(runId)).status).to.equal('running');
    });
  }
});
