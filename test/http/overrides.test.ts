import { expect } from 'chai';
import type { Graph, GodModeState } from '../../src/generated/schemas.js';
import { failureOf, finalDraftOf, openPauseOf } from '../../src/run/state.js';
import { graphOf } from '../support/given.js';
import { approvePath, startGodRun, stateOf } from '../support/god-run.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import { runWhen } from '../support/run-when.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

const UNEVEN = graphOf('s -> a, b; b -> c');
const JOINED = graphOf('s -> a, b; b -> c; a, c -> meet');
const JUDGED = graphOf('s -> a, b; b -> judge?');

describe('An override over REST', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    const model = scriptedModel(({ answer, promptInput }) => {
      return { text: answer === 'draft' ? `by ${promptInput.label}` : '{"score": 4, "feedback": "More"}' };
    });
    service = await startService({ model });
    rest = restClient(service.url);
  });
  after(async () => {
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });

  const send = (runId: string, body: object): Promise<Reply> => rest.post(approvePath(runId), body);
  const decide = async (runId: string, body: object): Promise<void> =>
    void rest.read(await send(runId, body), 200, 'run-result.json');
  const modify = (runId: string, state: object): Promise<void> =>
    decide(runId, { action: 'modify', modified_state: state });
  /** Starts a run and approves its pauses until it waits before these nodes. */
  const waiting = async (graph: Graph, ...nodes: readonly string[]): Promise<string> => {
    const runId = await startGodRun(service.context, graph);
    await goOn(runId, nodes.join());
    return runId;
  };
  /** Approves until the run waits before these nodes, or to its end. */
  const goOn = async (runId: string, until = '', how = approve): Promise<void> => {
    for (let last = -1; ;) {
      const run = await runWhen(service.context, runId, (each) => {
        return finalDraftOf(each) !== null || failureOf(each) !== null || (openPauseOf(each)?.seq ?? -1) > last;
      });
      const pause = openPauseOf(run);
      if (pause === null || pause.nextNodes.join() === until) return;
      last = pause.seq;
      await how(runId);
    }
  };
  const approve = (runId: string): Promise<void> => decide(runId, { action: 'approve' });
  const finalOf = async (runId: string): Promise<string | null> => {
    await goOn(runId);
    const run = await rest.until(runId, isOver);
    await checkRecord(service.context.log, runId);
    return run.final_draft;
  };
  const shownIn = ({ current_state: current, branches }: GodModeState): object => ({
    ...current,
    ...(branches !== undefined && { branches }),
  });

  it('in a fork keeps the draft of a branch that has ended', async () => {
    const runId = await waiting(JUDGED, 'judge');
    const { seq } = await stateOf(rest, runId);
    const reply = await rest.post(`/api/runs/${runId}/fork`, {
      at: seq,
      changes: { modified_state: { current_draft: 'Forked' } },
    });
    const forkId = rest.read(reply, 202, 'run-start.json').run_id;
    expect(await finalOf(forkId)).to.equal('## A\nby A\n\n## B\nForked');
    const wrong = { branches: [{ node: 'a', current_draft: 'X' }] };
    const refused = await rest.post(`/api/runs/${runId}/fork`, { at: seq, changes: { modified_state: wrong } });
    const loc = ['body', 'changes', 'modified_state', 'branches', 0, 'node'];
    expect(rest.problem(refused, 422).errors?.[0]).to.deep.include({ loc, type: 'not_next' });
  });

  for (const [what, branches, place, type] of [
    ['an unknown node', [{ node: 'gone', current_draft: 'X' }], [0, 'node'], 'unknown_node'],
    ['a node that does not run next', [{ node: 'meet', current_draft: 'X' }], [0, 'node'], 'not_next'],
    ['a draft that is no text', [{ node: 'c', current_draft: 7 }], [0, 'current_draft'], 'string_type'],
    ['an unknown field', [{ node: 'c', current_draft: 'X', score: 1 }], [0, 'score'], 'extra_forbidden'],
  ] as const) {
    it(`with ${what} among its branches is refused with 422 before expected_seq is checked`, async () => {
      const runId = await waiting(JOINED, 'c');
      const shown = await stateOf(rest, runId);
      const body = { action: 'modify', modified_state: { branches }, expected_seq: 0 };
      const { errors } = rest.problem(await send(runId, body), 422);
      const loc = ['body', 'modified_state', 'branches', ...place];
      expect(errors?.[0]).to.deep.include({ loc, type });
      expect(await stateOf(rest, runId)).to.deep.equal(shown);
    });
  }

  it('of a read-only field gets 422 if the value differs', async () => {
    const runId = await waiting(UNEVEN, 'c');
    for (const state of [{ active_node: 'b' }, { run_id: runId.replace(/^./, 'x') }]) {
      const { errors } = rest.problem(await send(runId, { action: 'modify', modified_state: state }), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['body', 'modified_state', ...Object.keys(state)]);
    }
  });

  it('with the branches that the state shows changes nothing', async () => {
    const runId = await startGodRun(service.context, JOINED);
    await goOn(runId, '', async (id) => modify(id, shownIn(await stateOf(rest, id))));
    expect(await finalOf(runId)).to.equal('by Meet');
    const started = factsOf(await checkRecord(service.context.log, runId), 'NodeStarted');
    expect(started.map(({ node }) => node)).to.deep.equal(['s', 'a', 'b', 'c', 'meet']);
  });
});
