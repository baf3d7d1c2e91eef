import { expect } from 'chai';
import type { FoldedRun } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { graphOf } from '../support/given.js';
import { approvePath, pausedBefore, startGodRun } from '../support/god-run.js';
import { recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';

const FIELDS = [
  ...['run_id', 'seq', 'status', 'active_node', 'input_topic', 'material', 'current_draft'],
  ...[
    'final_draft',
    'final_output',
    'critic_score',
    'iteration_count',
    'feedback_history',
    'route_decision',
    'error',
    'paused',
    'next_nodes',
  ],
];

describe('GET /api/runs/{run_id}/state', () => {
  let service: RunningService;
  let rest: RestClient;
  const house = sharedService();

  const serve = async (scores: readonly number[]): Promise<void> => {
    service = await house.serve(scriptedModel(councilScript(scores)));
    rest = restClient(service.url);
  };

  const stateAt = async (runId: string, at?: number): Promise<FoldedRun> => {
    const query = at === undefined ? '' : `?at=${at}`;
    return rest.read(await rest.get(`/api/runs/${runId}/state${query}`), 200, 'folded-run.json');
  };
  /** The states after each event of a type. */
  const statesAfter = async (runId: string, type: RunEvent['type']): Promise<readonly FoldedRun[]> => {
    const events = (await recordOf(service.context.log, runId)).filter((event) => event.type === type);
    return Promise.all(events.map(({ seq }) => stateAt(runId, seq)));
  };

  it('returns the state after each event, without a call of a model', async () => {
    await serve([5, 9]);
    const runId = await rest.start();
    await rest.until(runId, isOver);
    const events = await recordOf(service.context.log, runId);
    for (const { seq } of events) {
      const state = await stateAt(runId, seq);
      expect(Object.keys(state)).to.deep.equal(FIELDS);
      expect(state).to.include({ run_id: runId, seq, input_topic: 'Trees', paused: false, error: null });
    }
    expect(await stateAt(runId, 0)).to.deep.include({
      status: 'pending',
      active_node: null,
      current_draft: null,
      final_draft: null,
      critic_score: null,
      iteration_count: 0,
      feedback_history: [],
      route_decision: null,
      next_nodes: [],
    });
    const [first, scored, second] = await statesAfter(runId, 'NodeCompleted');
    expect(first).to.include({
      status: 'running',
      current_draft: 'Draft 1 by Master',
      iteration_count: 1,
      critic_score: null,
    });
    expect(scored).to.include({ active_node: 'critic_agent', critic_score: 5, route_decision: 'rework' });
    expect(scored?.feedback_history).to.have.lengthOf(1);
    expect(second).to.include({ current_draft: 'Draft 2 by Master', iteration_count: 2 });
    const last = await stateAt(runId);
    expect(last).to.deep.equal(await stateAt(runId, events.length - 1));
    expect(last).to.include({ status: 'completed', active_node: 'done', critic_score: 9 });
    expect(last.final_draft).to.equal((await rest.poll(runId)).final_draft);
  });

  it('returns the state at a pause, after the decision, and at the end', async () => {
    await serve([9]);
    const runId = await startGodRun(service.context, graphOf('write -> judge?; judge? -approve-> polish'));
    await pausedBefore(service.context, runId, 'write');
    const paused = await stateAt(runId);
    expect(paused).to.deep.include({ status: 'paused', active_node: 'write', paused: true, next_nodes: ['write'] });
    const modified = { action: 'modify', modified_state: { input_topic: 'Lakes', feedback_history: ['Shorter.'] } };
    rest.read(await rest.post(approvePath(runId), modified), 200, 'run-result.json');
    await pausedBefore(service.context, runId, 'judge');
    rest.read(await rest.post(approvePath(runId), { action: 'reject' }), 200, 'run-result.json');

    expect(await stateAt(runId, paused.seq)).to.deep.equal(paused);
    const changed = { input_topic: 'Lakes', feedback_history: ['Shorter.'] };
    expect((await statesAfter(runId, 'RunResumed'))[0]).to.deep.include({ ...changed, paused: false, next_nodes: [] });
    const error = 'Rejected by the user in God Mode';
    expect(await stateAt(runId)).to.deep.include({
      ...changed,
      status: 'failed',
      error,
      paused: false,
      next_nodes: [],
    });
  });

  it('answers 422 to an event after the end, and to an invalid revision', async () => {
    await serve([9]);
    const runId = await rest.start();
    const { seq } = await rest.until(runId, isOver).then(() => stateAt(runId));
    for (const at of [seq + 1, seq + 1000, Number.MAX_SAFE_INTEGER, -1, '1e3', '1.5', 'x', '', '0&at=1']) {
      const { errors } = rest.problem(await rest.get(`/api/runs/${runId}/state?at=${at}`), 422);
      expect(errors?.[0]?.loc, String(at)).to.deep.equal(['query', 'at']);
    }
  });

  it('answers 404 naming the id of an unknown run', async () => {
    await serve([9]);
    for (const query of ['', '?at=0', '?at=7']) {
      expect(rest.problem(await rest.get(`/api/runs/${NO_RUN}/state${query}`), 404).detail).to.include(NO_RUN);
    }
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/state?at=x`), 422);
  });
});
