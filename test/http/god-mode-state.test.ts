import { expect } from 'chai';
import { graphOf } from '../support/given.js';
import { approvePath, pausedBefore, startGodRun, stateOf } from '../support/god-run.js';
import { recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';

const council = graphOf(`
  write -> judge?
  judge? -rework-> write
  judge? -approve-> polish
`);
const fork = graphOf(`
  plan -> left, right
  left -> extra
  extra, right -> meet
`);

describe('GET /api/councils/run/{run_id}/state', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  const house = sharedService();

  const serve = async (script: Parameters<typeof scriptedModel>[0]): Promise<void> => {
    model = scriptedModel(script);
    service = await house.serve(model);
    rest = restClient(service.url);
  };

  const approve = async (runId: string): Promise<void> =>
    void rest.read(await rest.post(approvePath(runId), { action: 'approve' }), 200, 'run-result.json');

  it('shows a new run before its first node', async () => {
    await serve(councilScript([5]));
    const runId = await startGodRun(service.context, council);
    const events = await recordOf(service.context.log, runId);
    const paused = events.find(({ type }) => type === 'RunPaused');
    const [requested] = events;
    expect(await stateOf(rest, runId)).to.deep.equal({
      run_id: runId,
      paused: true,
      next_nodes: ['write'],
      current_state: {
        input_topic: 'The sea',
        current_draft: null,
        critic_score: null,
        iteration_count: 0,
        feedback_history: [],
        route_decision: null,
        active_node: 'write',
        run_id: runId,
      },
      seq: paused?.seq,
      paused_at: paused?.at,
      allowed_actions: ['approve', 'reject', 'modify'],
      blueprint: {
        id: 'blueprint',
        name: 'Blueprint',
        hash: requested?.type === 'RunRequested' ? requested.data.graphHash : '',
      },
    });
  });

  it('shows a run that is running, with nothing to decide', async () => {
    await serve(() => 'hold');
    const runId = await startGodRun(service.context, council);
    await approve(runId);
    await model.called(1);
    const head = (await recordOf(service.context.log, runId)).length - 1;
    expect(await stateOf(rest, runId)).to.deep.include({
      paused: false,
      next_nodes: [],
      seq: head,
      paused_at: null,
      allowed_actions: [],
    });
  });

  it('remains available after the end', async () => {
    await serve(councilScript([9]));
    const done = await startGodRun(service.context, council);
    for (const node of ['write', 'judge', 'polish']) {
      await pausedBefore(service.context, done, node);
      await approve(done);
    }
    await rest.until(done, isOver);
    const rejected = await startGodRun(service.context, council);
    await rest.post(approvePath(rejected), { action: 'reject' });
    for (const [runId, activeNode, draft] of [
      [done, 'done', 'Draft 2 by Polish'],
      [rejected, 'write', null],
    ] as const) {
      const state = await stateOf(rest, runId);
      const seq = (await recordOf(service.context.log, runId)).length - 1;
      expect(state).to.deep.include({ paused: false, next_nodes: [], allowed_actions: [], paused_at: null, seq });
      expect(state.current_state).to.include({ active_node: activeNode, current_draft: draft });
      expect(state).not.to.have.property('branches');
    }
  });

  it('shows every branch while several are live', async () => {
    await serve(({ promptInput }) => ({ text: `by ${promptInput.label}` }));
    const runId = await startGodRun(service.context, fork);
    await approve(runId);
    await pausedBefore(service.context, runId, 'left', 'right');
    const parted = await stateOf(rest, runId);
    expect(parted.next_nodes).to.deep.equal(['left', 'right']);
    expect(parted.branches).to.deep.equal([
      { node: 'left', current_draft: 'by Plan' },
      { node: 'right', current_draft: 'by Plan' },
    ]);
    await approve(runId);
    await pausedBefore(service.context, runId, 'extra');
    const waiting = await stateOf(rest, runId);
    expect(waiting.current_state.current_draft).to.equal('by Left');
    expect(waiting.branches).to.deep.equal([
      { node: 'extra', current_draft: 'by Left' },
      { node: 'meet', current_draft: 'by Right' },
    ]);
    await approve(runId);
    await pausedBefore(service.context, runId, 'meet');
    expect(await stateOf(rest, runId)).not.to.have.property('branches');
  });

  it('answers 404 naming the id for a run without God Mode or an unknown run', async () => {
    await serve(councilScript([8]));
    const plain = await rest.start();
    for (const id of [NO_RUN, 'nothing', plain]) {
      expect(rest.problem(await rest.get(`/api/councils/run/${id}/state`), 404).detail).to.include(id);
    }
  });
});
