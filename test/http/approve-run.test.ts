import { expect } from 'chai';
import type { RunResult } from '../../src/generated/schemas.js';
import { MAX_DRAFT_BYTES } from '../../src/graph/limits.js';
import { graphOf } from '../support/given.js';
import { approvePath, pausedBefore, startGodRun, stateOf } from '../support/god-run.js';
import { factsOf, recordOf } from '../support/record-of.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, currentModel, scriptedModel } from '../support/scripted-model.js';

const council = graphOf(`
  write -> judge?
  judge? -rework-> write
  judge? -approve-> polish
`);

const JSON_TYPE = { 'Content-Type': 'application/json' };
const NULLS = {
  final_draft: null,
  critic_score: null,
  iteration_count: null,
  paused: null,
  next_nodes: null,
  current_draft: null,
};
const running = (runId: string): RunResult => ({ ...NULLS, run_id: runId, status: 'running', error: null });
const rejected = (runId: string): RunResult => ({
  ...NULLS,
  run_id: runId,
  status: 'failed',
  error: 'Rejected by the user in God Mode',
});

describe('POST /api/councils/run/{run_id}/approve', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  let runId: string;

  before(async () => {
    service = await startService({ model: currentModel(() => model) });
    rest = restClient(service.url);
  });
  beforeEach(async () => {
    model = scriptedModel(councilScript([5, 9]));
    runId = await startGodRun(service.context, council);
  });
  afterEach(async () => {
    // A run that continues would call the model of the next test.
    await rest.post(`/api/councils/run/${runId}/cancel`);
    expect(service.faults).to.deep.equal([]);
  });
  after(() => service.stop());

  const send = (body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
    rest.post(approvePath(runId), body, headers);
  const approve = async (): Promise<void> => void rest.read(await send({ action: 'approve' }), 200, 'run-result.json');
  const pausesBefore = (...nodes: readonly string[]): Promise<number> => pausedBefore(service.context, runId, ...nodes);
  /** Approves until the run waits for the decision after the critic's first score, 5. */
  const judged = async (): Promise<void> => {
    await approve();
    await pausesBefore('judge');
    await approve();
    await pausesBefore('write');
  };

  it('runs to the next pause on approve, and answers only with the immediate effect', async () => {
    expect(rest.read(await send({ action: 'approve' }), 200, 'run-result.json')).to.deep.equal(running(runId));
    await pausesBefore('judge');
    expect(await rest.poll(runId)).to.deep.include({
      status: 'paused',
      paused: true,
      next_nodes: ['judge'],
      current_draft: 'Draft 1 by Write',
      iteration_count: 1,
    });
    expect(model.requests).to.have.length(1);
  });

  it('records a comment with the decision, and refuses one of more than 2,000 characters', async () => {
    const comment = '🌊'.repeat(2_000);
    rest.problem(await send({ action: 'approve', comment: `${comment}.` }), 422);
    rest.problem(await send({ action: 'approve', comment: 7 }), 422);
    rest.read(await send({ action: 'approve', comment, actor: 'eve' }), 200, 'run-result.json');
    await pausesBefore('judge');
    rest.read(await send({ action: 'reject', comment: null }), 200, 'run-result.json');
    const decided = factsOf(await recordOf(service.context.log, runId), 'GateDecided');
    expect(decided.map(({ actor, comment: said }) => ({ actor, said }))).to.deep.equal([
      { actor: null, said: comment },
      { actor: null, said: null },
    ]);
  });

  it('resumes in the modified state on modify', async () => {
    const override = { input_topic: 'Rivers', current_draft: 'Mine', feedback_history: ['Shorter'] };
    const reply = await send({ action: 'modify', modified_state: override });
    expect(rest.read(reply, 200, 'run-result.json')).to.deep.equal(running(runId));
    await pausesBefore('judge');
    expect(model.requests[0]?.promptInput).to.include({ topic: 'Rivers', draft: 'Mine' });
    expect(model.requests[0]?.promptInput.feedback).to.deep.equal(['Shorter']);
    const record = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(record.input_topic).to.equal('The sea');
    expect((await stateOf(rest, runId)).current_state.input_topic).to.equal('Rivers');
  });

  it('refuses with 422 an override without a route, and keeps the pause', async () => {
    await judged();
    const shown = await stateOf(rest, runId);
    for (const override of [{ route_decision: null }, { critic_score: null }]) {
      const { errors } = rest.problem(await send({ action: 'modify', modified_state: override }), 422);
      expect(errors?.[0])
        .to.include({ type: 'no_route' })
        .and.to.deep.include({ loc: ['body', 'modified_state'] });
      expect(errors?.[0]?.msg).to.include('"judge"');
    }
    expect(await stateOf(rest, runId)).to.deep.equal(shown);
    rest.problem(await send({ action: 'modify', modified_state: { critic_score: null }, expected_seq: 1 }), 409);
    rest.read(await send({ action: 'modify', modified_state: { critic_score: 9 } }), 200, 'run-result.json');
    expect((await rest.until(runId, isOver)).status).to.equal('completed');
  });

  for (const [what, body] of [
    ['without modified_state', { action: 'modify' }],
    ['with nulls', { action: 'modify', modified_state: null, expected_seq: null }],
    ['with unknown fields', '{"action":"approve","actor":"me","__proto__":{"action":"reject"}}'],
  ] as const) {
    it(`resumes the run unchanged on a decision ${what}`, async () => {
      const reply = await rest.send('POST', approvePath(runId), { body, headers: JSON_TYPE });
      expect(rest.read(reply, 200, 'run-result.json')).to.deep.equal(running(runId));
      await pausesBefore('judge');
      expect(model.requests[0]?.promptInput).to.include({ topic: 'The sea', draft: null });
    });
  }

  for (const [what, body, loc] of [
    ['no action', {}, ['action']],
    ['a modified_state that is a list', { action: 'modify', modified_state: [] }, ['modified_state']],
    ['a negative expected_seq', { action: 'approve', expected_seq: -1 }, ['expected_seq']],
    ['a list', [], []],
    ['an unpaired surrogate', '{"action":"modify","modified_state":{"current_draft":"\\ud800"}}', ['modified_state']],
  ] as const) {
    it(`refuses ${what} with 422, of an unknown run too`, async () => {
      for (const path of [approvePath(runId), approvePath(NO_RUN)]) {
        const { errors } = rest.problem(await rest.send('POST', path, { body, headers: JSON_TYPE }), 422);
        expect(errors?.[0]?.loc).to.deep.equal(['body', ...loc]);
      }
      await pausesBefore('write');
    });
  }

  it('refuses an unknown action with 422 and leaves the pause as it is', async () => {
    for (const action of ['', 'Approve', 'resume', 'constructor']) {
      const { errors } = rest.problem(await send({ action }), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['body', 'action']);
    }
    await pausesBefore('write');
    await approve();
  });

  for (const [what, override, ...loc] of [
    ['an unknown key', { active_node: 'x' }, 'active_node'],
    ['a key named __proto__', Object.fromEntries([['__proto__', { critic_score: 9 }]]), '__proto__'],
    ['an empty topic', { input_topic: '' }, 'input_topic'],
    ['a draft over 128 KiB', { current_draft: 'x'.repeat(MAX_DRAFT_BYTES - 1) }, 'current_draft'],
    ['a score over 10', { critic_score: 10.1 }, 'critic_score'],
    ['1001 iterations', { iteration_count: 1001 }, 'iteration_count'],
    ['feedback that is no text', { feedback_history: ['x', 1] }, 'feedback_history', 1],
    ['feedback over 8 KiB', { feedback_history: ['x'.repeat(8 * 1024)] }, 'feedback_history', 0],
    ['another route', { route_decision: 'stop' }, 'route_decision'],
  ] as const) {
    it(`refuses ${what} with 422 naming the key, and leaves the pause as it is`, async () => {
      // The service checks this before expected_seq.
      const reply = await send({ action: 'modify', modified_state: override, expected_seq: 999 });
      expect(rest.problem(reply, 422).errors?.[0]?.loc).to.deep.equal(['body', 'modified_state', ...loc]);
      await pausesBefore('write');
    });
  }

  it('accepts an override with values at their limits', async () => {
    const override = {
      input_topic: '𝄞'.repeat(10_000),
      current_draft: 'x'.repeat(MAX_DRAFT_BYTES - 2),
      critic_score: 10,
      iteration_count: 1000,
      feedback_history: ['x'.repeat(8 * 1024 - 2), '很'.repeat(4000)],
      route_decision: 'approve',
    };
    rest.read(await send({ action: 'modify', modified_state: override }), 200, 'run-result.json');
    await pausesBefore('judge');
    expect((await stateOf(rest, runId)).current_state).to.include({ iteration_count: 1001, critic_score: 10 });
  });

  it('accepts a shown state with over 1000 iterations unchanged, but no other count above 1000', async () => {
    rest.read(await send({ action: 'modify', modified_state: { iteration_count: 1000 } }), 200, 'run-result.json');
    await pausesBefore('judge');
    const { current_state: shown } = await stateOf(rest, runId);
    expect(shown).to.include({ iteration_count: 1001 });
    const refused = await send({
      action: 'modify',
      modified_state: { ...shown, iteration_count: 1002 },
      expected_seq: 999,
    });
    const { errors } = rest.problem(refused, 422);
    expect(errors?.map(({ loc, type }) => [loc.join('.'), type])).to.deep.equal([
      ['body.modified_state.iteration_count', 'less_than_equal'],
    ]);
    rest.read(await send({ action: 'modify', modified_state: shown }), 200, 'run-result.json');
  });

  it('refuses a modified_state over 256 KiB with 413 and accepts one of 256 KiB', async () => {
    const sized = (bytes: number) => ({ x: 'x'.repeat(bytes - '{"x":""}'.length) });
    rest.problem(await send({ action: 'approve', modified_state: sized(256 * 1024 + 1) }), 413);
    await pausesBefore('write');
    rest.read(await send({ action: 'approve', modified_state: sized(256 * 1024) }), 200, 'run-result.json');
  });

  it('answers 409 to another expected_seq, and accepts the shown one', async () => {
    const { seq } = await stateOf(rest, runId);
    for (const expected of [0, seq - 1, seq + 1, 1e300]) {
      rest.problem(await send({ action: 'approve', expected_seq: expected }), 409);
    }
    rest.read(await send({ action: 'approve', expected_seq: seq }), 200, 'run-result.json');
    await pausesBefore('judge');
    rest.problem(await send({ action: 'approve', expected_seq: seq }), 409);
  });

  it('answers 400 for runs that are not paused in God Mode, whatever the action', async () => {
    const plain = await rest.start();
    await rest.until(plain, isOver);
    rest.read(await send({ action: 'reject' }), 200, 'run-result.json');
    for (const id of [NO_RUN, 'nothing', '%00', '%zz', 'constructor', plain, runId]) {
      for (const action of ['approve', 'dance']) {
        const reply = await rest.post(approvePath(id), { action, modified_state: {}, expected_seq: 1 });
        expect(rest.problem(reply, 400).detail).to.include('not paused in God Mode');
      }
    }
  });

  it('answers 400 while the run is running', async () => {
    model = scriptedModel(() => 'hold');
    await approve();
    await model.called(1);
    expect(rest.problem(await send({ action: 'approve' }), 400).detail).to.include('running');
  });

  describe('with an Idempotency-Key', () => {
    const keyed = (body: unknown, key = 'k'): Promise<Reply> => send(body, { 'Idempotency-Key': key });

    it('gives the same answer a hundred times at once and has one effect', async () => {
      const replies = await Promise.all(Array.from({ length: 100 }, () => keyed({ action: 'approve' })));
      for (const reply of replies) expect(rest.read(reply, 200, 'run-result.json')).to.deep.equal(running(runId));
      await pausesBefore('judge');
      const decided = service.lines.filter((line) => 'runId' in line && line.runId === runId);
      expect(decided.filter(({ msg }) => msg === 'pause decided')).to.have.length(1);
      expect(model.requests).to.have.length(1);
    });

    it('gives the same answer at the next pause, after the end, and with a trailing slash', async () => {
      await keyed({ action: 'approve' });
      await pausesBefore('judge');
      rest.read(await keyed({ action: 'approve' }), 200, 'run-result.json');
      await pausesBefore('judge');
      const last = await keyed({ action: 'reject' }, 'l');
      expect(rest.read(last, 200, 'run-result.json')).to.deep.equal(rejected(runId));
      expect(rest.read(await keyed({ action: 'reject' }, 'l'), 200, 'run-result.json')).to.deep.equal(rejected(runId));
      expect(rest.read(await keyed({ action: 'approve' }), 200, 'run-result.json')).to.deep.equal(running(runId));
      const slashed = await rest.post(`${approvePath(runId)}/`, { action: 'approve' }, { 'Idempotency-Key': 'k' });
      rest.read(slashed, 200, 'run-result.json');
    });

    it('means the same decision with nulls written out', async () => {
      rest.read(await keyed({ action: 'approve', modified_state: null, expected_seq: null }), 200, 'run-result.json');
      rest.read(await keyed({ action: 'approve' }), 200, 'run-result.json');
      await pausesBefore('judge');
    });

    it('answers 409 to another body, even to one that is refused otherwise', async () => {
      await keyed({ action: 'approve' });
      for (const body of [{ action: 'reject' }, { action: 'dance' }, { action: 'approve', expected_seq: 3 }]) {
        rest.problem(await keyed(body), 409);
      }
    });

    it('is not used up by a request that was refused', async () => {
      rest.problem(await keyed({ action: 'dance' }), 422);
      rest.problem(await keyed({ action: 'approve', expected_seq: 1 }), 409);
      rest.read(await keyed({ action: 'approve' }), 200, 'run-result.json');
    });

    it('means another decision on another run', async () => {
      await keyed({ action: 'approve' });
      const other = await startGodRun(service.context, council);
      const reply = await rest.post(approvePath(other), { action: 'reject' }, { 'Idempotency-Key': 'k' });
      expect(rest.read(reply, 200, 'run-result.json').status).to.equal('failed');
    });
  });
});
