import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { StepPrompt } from '../../src/generated/schemas.js';
import { rejectionOf } from '../support/rejection.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

describe('GET /api/runs/{run_id}/prompt', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  let council: CouncilClient;

  before(async () => {
    model = scriptedModel(councilScript([6, 8]));
    service = await startService({ model });
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const promptAt = async (runId: string, query: string): Promise<StepPrompt> =>
    rest.read(await rest.get(`/api/runs/${runId}/prompt?${query}`), 200, 'step-prompt.json');

  it('shows the prompt of each step as the model received it', async () => {
    const sent = model.requests.length;
    const runId = await rest.start('The <draft> of a garden');
    await rest.until(runId, isOver);
    const requests = model.requests.slice(sent);
    expect(requests).to.have.lengthOf(5);
    for (const [index, { system, prompt, promptInput }] of requests.entries()) {
      const told = await promptAt(runId, `step=${index + 1}`);
      expect(told).to.deep.include({ run_id: runId, step: index + 1, attempt: 1, system, prompt, verified: true });
      expect(told).to.deep.include({
        label: promptInput.label,
        role: promptInput.role,
        model: 'scripted-1',
        tools: [],
      });
      const { topic, draft, feedback } = promptInput;
      expect(told.inputs).to.deep.equal({ input_topic: topic, current_draft: draft, feedback_history: feedback });
      expect(await council.run(runId).prompt(index + 1, { attempt: 1 })).to.deep.equal(told);
    }
  });

  it('includes the changes of a human before the node, and shows the steps of a fork', async () => {
    const nodes = [{ id: 'write', systemPrompt: 'Write verse.' }, { id: 'polish' }];
    const blueprint = await council.blueprints.create({
      name: 'Pair',
      nodes,
      edges: [{ source: 'write', target: 'polish' }],
    });
    const run = await council.runs.start({ topic: 'The sea', blueprint, godMode: true });
    const pause = await run.pause();
    await pause?.modify({ current_draft: 'The sea is deep.', feedback_history: ['Be short'] });
    for await (const { type, seq } of run.events()) if (type === 'RunPaused' && seq > (pause?.seq ?? 0)) break;
    const told = await run.prompt(1);
    expect(told).to.deep.include({ node: 'write', verified: true });
    expect(told.system).to.include('Write verse.');
    expect(told.inputs).to.deep.include({ current_draft: 'The sea is deep.', feedback_history: ['Be short'] });

    const { seq: at } = await run.state();
    const fork = await run.fork({ at, changes: { nodes: [{ id: 'polish', systemPrompt: 'Shorten.' }] } });
    await (await fork.pause())?.approve();
    await fork.result();
    expect(await fork.prompt(2))
      .to.include({ node: 'polish', verified: true })
      .and.have.property('system')
      .that.includes('Shorten.');
    expect(await rejectionOf(fork.prompt(1))).to.have.property('status', 404);
    await run.cancel();
  });

  it('answers 404 for an unknown step or attempt, and 422 for an invalid number', async () => {
    const runId = await rest.start();
    await rest.until(runId, isOver);
    for (const query of ['step=0', 'step=99', 'step=1&attempt=2']) {
      expect(rest.problem(await rest.get(`/api/runs/${runId}/prompt?${query}`), 404).detail).to.include(runId);
    }
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/prompt?step=1`), 404);
    for (const query of ['', 'step=', 'step=x', 'step=1.5', 'step=-1', 'step=1&step=2', 'step=1&attempt=0']) {
      rest.problem(await rest.get(`/api/runs/${runId}/prompt?${query}`), 422);
    }
  });
});
