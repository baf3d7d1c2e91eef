import { expect } from 'chai';
import type { Graph, GodModeState } from '../../src/generated/schemas.js';
import { failureOf, finalDraftOf, openPauseOf } from '../../src/run/state.js';
import { graphOf } from '../support/given.js';
import { approvePath, pausedBefore, startGodRun, stateOf } from '../support/god-run.js';
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
const COUNCIL = graphOf('write -> judge?; judge? -rework-> write; judge? -approve-> polish');

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
  /** A new run that waits before these nodes, every pause before approved. */
  const waiting = async (graph: Graph, ...nodes: readonly string[]): Promise<string> => {
    const runId = await startGodRun(service.engine, graph);
    await goOn(runId, nodes.join());
    return runId;
  };
  /** Approves until the run waits before these nodes, or to its end. */
  const goOn = async (runId: string, until = '', how = approve): Promise<void> => {
    for (let last = -1; ;) {
      const run = await runWhen(service.engine, runId, (each) => {
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
    await checkRecord(service.engine.log, runId);
    return run.final_draft;
  };
  const shownIn = ({ current_state: current, branches }: GodModeState): object => ({
    ...current,
    ...(branches !== undefined && { branches }),
  });

  for (const [what, graph, next, final] of [
    ['has ended', UNEVEN, 'c', '## A\nby A\n\n## C\nby C'],
    ['waits at a join', JOINED, 'c', 'by Meet'],
    ['has ended, beside one whose next node is a critic', JUDGED, 'judge', '## A\nby A\n\n## B\nX'],
  ] as const) {
    it(`of the draft leaves the work of a branch that ${what}`, async () => {
      const runId = await waiting(graph, next);
      await modify(runId, { current_draft: 'X' });
      if (graph === JOINED) {
        await pausedBefore(service.engine, runId, 'meet');
        expect((await stateOf(rest, runId)).current_state.current_draft).to.equal('## A\nby A\n\n## C\nby C');
      }
      expect(await finalOf(runId)).to.equal(final);
    });
  }

  it('of a fork leaves it too', async () => {
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

  it('of single branches wins over the one for all', async () => {
    const runId = await waiting(graphOf('s -> k?, l?, m?'), 'k', 'l', 'm');
    const branches = [{ node: 'l', current_draft: 'For l' }];
    await modify(runId, { current_draft: 'For all', branches });
    await goOn(runId);
    const [, decided] = factsOf(await checkRecord(service.engine.log, runId), 'GateDecided');
    expect(decided).to.deep.include({ modifiedState: { current_draft: 'For all', branches }, overrideVersion: 2 });
    expect(await finalOf(runId)).to.equal('## K\nFor all\n\n## L\nFor l');
  });

  for (const [what, branches, place, type] of [
    ['a node that the run does not have', [{ node: 'gone', current_draft: 'X' }], [0, 'node'], 'unknown_node'],
    ['a node that does not run next', [{ node: 'meet', current_draft: 'X' }], [0, 'node'], 'not_next'],
    [
      'a node twice',
      [
        { node: 'c', current_draft: 'X' },
        { node: 'c', current_draft: 'Y' },
      ],
      [1, 'node'],
      'duplicate',
    ],
    ['a draft that is no text', [{ node: 'c', current_draft: 7 }], [0, 'current_draft'], undefined],
    ['no draft', [{ node: 'c' }], [0, 'current_draft'], undefined],
    ['another field', [{ node: 'c', current_draft: 'X', score: 1 }], [0, 'score'], 'extra_forbidden'],
    ['a list of texts', ['c'], [0], undefined],
    ['a text', 'c', [], undefined],
  ] as const) {
    it(`of branches that holds ${what} is 422 before a stale expected_seq, and the pause stays`, async () => {
      const runId = await waiting(JOINED, 'c');
      const shown = await stateOf(rest, runId);
      const body = { action: 'modify', modified_state: { branches }, expected_seq: 0 };
      const { errors } = rest.problem(await send(runId, body), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['body', 'modified_state', 'branches', ...place]);
      if (type !== undefined) expect(errors?.[0]?.type).to.equal(type);
      expect(await stateOf(rest, runId)).to.deep.equal(shown);
    });
  }

  it('of what is shown but cannot be changed is 422 when it differs', async () => {
    const runId = await waiting(UNEVEN, 'c');
    for (const state of [{ active_node: 'b' }, { run_id: runId.replace(/^./, 'x') }]) {
      const { errors } = rest.problem(await send(runId, { action: 'modify', modified_state: state }), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['body', 'modified_state', ...Object.keys(state)]);
    }
  });

  it('of a changed score with the route that is shown follows that route', async () => {
    const runId = await waiting(COUNCIL, 'judge');
    await approve(runId);
    await goOn(runId, 'write');
    expect((await stateOf(rest, runId)).current_state).to.include({ critic_score: 4, route_decision: 'rework' });
    const sent = { critic_score: 9, route_decision: 'rework', iteration_count: 1 };
    await modify(runId, sent);
    const decided = factsOf(await checkRecord(service.engine.log, runId), 'GateDecided').at(-1);
    expect(decided?.nextNodes).to.deep.equal(['write']);
    expect(decided?.modifiedState).to.deep.equal({ critic_score: 9, route_decision: 'rework' });
    expect(decided).to.deep.include({ sentState: sent });
  });

  it('that sends back what each pause shows changes nothing, even if the critic never approves', async () => {
    const runId = await startGodRun(service.engine, COUNCIL);
    const routes: (string | null)[] = [];
    await goOn(runId, '', async (id) => {
      const state = await stateOf(rest, id);
      routes.push(state.current_state.route_decision);
      await modify(id, shownIn(state));
    });
    const run = await rest.until(runId, isOver);
    expect(run).to.deep.include({ status: 'completed', final_draft: 'by Polish', critic_score: 4, iteration_count: 6 });
    expect(routes.at(-2)).to.equal('rework');
    expect(routes.at(-1)).to.equal('approve');
    const decided = factsOf(await checkRecord(service.engine.log, runId), 'GateDecided');
    for (const { modifiedState, route } of decided) expect([modifiedState, route]).to.deep.equal([{}, null]);
  });

  it('that sends the shown branches back changes nothing either, those that wait included', async () => {
    const runId = await startGodRun(service.engine, JOINED);
    await goOn(runId, '', async (id) => modify(id, shownIn(await stateOf(rest, id))));
    expect(await finalOf(runId)).to.equal('by Meet');
    const started = factsOf(await checkRecord(service.engine.log, runId), 'NodeStarted');
    expect(started.map(({ node }) => node)).to.deep.equal(['s', 'a', 'b', 'c', 'meet']);
  });

  it('of the fifth score leads nowhere back, a decision for rework does', async () => {
    const runId = await waiting(COUNCIL, 'polish');
    expect((await stateOf(rest, runId)).current_state).to.include({ critic_score: 4, route_decision: 'approve' });
    await modify(runId, { critic_score: 3, route_decision: 'rework' });
    await goOn(runId, 'polish');
    await modify(runId, { critic_score: 2 });
    expect(await finalOf(runId)).to.equal('by Polish');
    expect(await rest.poll(runId)).to.include({ critic_score: 2, iteration_count: 7 });
  });
});
