import { expect } from 'chai';
import { graphOf } from '../support/given.js';
import { approvePath, pausedBefore, startGodRun, stateOf } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const JOINED = graphOf('s -> a, b; b -> c; a, c -> meet');

// run/pauses/overrides.test.ts has the rules of overrides.
describe('An override over REST', () => {
  let service: RunningService;
  let rest: RestClient;
  /** A run that waits before c. */
  let runId: string;

  before(async () => {
    service = await startService({ model: instantModel() });
    rest = restClient(service.url);
    runId = await startGodRun(service.context, JOINED);
    for (const nodes of [['s'], ['a', 'b']]) {
      await pausedBefore(service.context, runId, ...nodes);
      rest.read(await rest.post(approvePath(runId), { action: 'approve' }), 200, 'run-result.json');
    }
    await pausedBefore(service.context, runId, 'c');
  });
  after(async () => {
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });

  const modify = (state: object, more: object = {}): Promise<Reply> =>
    rest.post(approvePath(runId), { action: 'modify', modified_state: state, ...more });

  for (const [what, branches, place, type] of [
    ['an unknown node', [{ node: 'gone', current_draft: 'X' }], [0, 'node'], 'unknown_node'],
    ['a node that does not run next', [{ node: 'meet', current_draft: 'X' }], [0, 'node'], 'not_next'],
    ['a draft that is no text', [{ node: 'c', current_draft: 7 }], [0, 'current_draft'], 'string_type'],
    ['an unknown field', [{ node: 'c', current_draft: 'X', score: 1 }], [0, 'score'], 'extra_forbidden'],
  ] as const) {
    it(`with ${what} among its branches is refused with 422 before expected_seq is checked`, async () => {
      const shown = await stateOf(rest, runId);
      const { errors } = rest.problem(await modify({ branches }, { expected_seq: 0 }), 422);
      const loc = ['body', 'modified_state', 'branches', ...place];
      expect(errors?.[0]).to.deep.include({ loc, type });
      expect(await stateOf(rest, runId)).to.deep.equal(shown);
    });
  }

  it('in a fork is refused with 422 for a node that does not run next', async () => {
    const { seq } = await stateOf(rest, runId);
    const wrong = { branches: [{ node: 'a', current_draft: 'X' }] };
    const refused = await rest.post(`/api/runs/${runId}/fork`, { at: seq, changes: { modified_state: wrong } });
    const loc = ['body', 'changes', 'modified_state', 'branches', 0, 'node'];
    expect(rest.problem(refused, 422).errors?.[0]).to.deep.include({ loc, type: 'not_next' });
  });

  it('of a read-only field gets 422 if the value differs', async () => {
    for (const state of [{ active_node: 'b' }, { run_id: runId.replace(/^./, 'x') }]) {
      const { errors } = rest.problem(await modify(state), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['body', 'modified_state', ...Object.keys(state)]);
    }
  });
});
