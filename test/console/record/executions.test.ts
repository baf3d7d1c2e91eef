import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import type { ExecutionTrace } from '../../../src/console/record/executions.js';
import { traceAt } from '../../../src/console/record/executions.js';
import type { RunState } from '../../../src/run/state.js';
import { goldenRecords, history, recordOf } from '../../support/console-records.js';
import { attemptOf, failed, given, graphOf } from '../../support/given.js';
import { goldenHistories } from '../../support/golden-histories.js';
import { named, randomStory } from '../../support/random-history.js';
import { spent } from '../../support/usage.js';

describe('The execution trace of a run', () => {
  it('lists the steps of a loop with their edges and reasons', () => {
    const ran = ranOf(history('fixed-graph'));
    expect(ran.executions.map(({ step, node, state }) => `${step} ${node} ${state}`)).to.deep.equal([
      '1 master_agent done',
      '2 critic_agent done',
      '3 master_agent done',
      '4 critic_agent done',
      '5 writer_agent done',
    ]);
    expect(ran.edges.map(({ from, to, reason }) => `${from}-${to} ${reason}`)).to.deep.equal([
      '0-1 null',
      '1-2 linear edge',
      '2-3 condition rework',
      '3-4 linear edge',
      '4-5 condition approve',
    ]);
    expect(ran.edges[2]?.condition).to.equal('rework');
    expect(ran.executions[1]?.output?.value).to.deep.equal({ score: 6.5, feedback: 'More depth' });
  });

  it('joins branches in one step with an edge from each', () => {
    const ran = ranOf(history('branches'));
    const join = ran.executions.find(({ node }) => node === 'meet');
    const into = ran.edges.filter(({ to }) => to === join?.step);
    const nodeOf = (step: number) => ran.executions.find((each) => each.step === step)?.node;
    expect(into.map(({ from }) => nodeOf(from))).to.deep.equal(['check', 'right']);
  });

  it('keeps every attempt with its failure and the wait before the next', () => {
    const ran = ranOf(history('failure-after-retries'));
    const [only] = ran.executions;
    expect(only?.state).to.equal('failed');
    expect(only?.attempts.map(({ delayMs, ended }) => [delayMs, ended?.how])).to.deep.equal([
      [0, 'failed'],
      [250, 'failed'],
      [500, 'failed'],
    ]);
    expect(only?.backOffMs).to.equal(750);
    expect(ran.end?.how).to.equal('failed');
  });

  it('waits while an attempt is in its back-off, and is active after it', () => {
    const events = history('failure-after-retries');
    const retried = events.findIndex(({ type, data }) => type === 'NodeStarted' && data.delayMs === 250);
    const record = recordOf(events.slice(0, retried + 1));
    const at = Date.parse(events[retried]?.at ?? '');
    const stateAt = (ms: number) => traceAt(record, retried, new Date(at + ms).toISOString())?.executions[0]?.state;
    expect([stateAt(100), stateAt(251)]).to.deep.equal(['waiting', 'active']);
  });

  it('marks steps that were active when the run was cancelled', () => {
    const ran = ranOf(history('cancel'));
    expect(ran.executions.map(({ node, state }) => `${node} ${state}`)).to.deep.equal([
      'plan done',
      'left cancelled',
      'right done',
    ]);
  });

  it('shows a lost attempt after a takeover', () => {
    const lost = ranOf(history('takeover')).executions.flatMap(({ node, attempts }) =>
      attempts.filter(({ ended }) => ended?.how === 'lost').map(() => node),
    );
    expect(lost).to.deep.equal(['left', 'left']);
  });

  it('lists tool calls with results, and sums tokens over attempts', () => {
    const [reader] = ranOf(history('tool-calls')).executions;
    const [first, second] = reader?.attempts ?? [];
    expect(first?.toolCalls.map(({ hits }) => hits.length)).to.deep.equal([2]);
    expect(second?.toolCalls.map(({ tool, hits }) => [tool, hits.length])).to.have.lengthOf(1);
    expect(reader?.usage).to.deep.equal({ inputTokens: 10, outputTokens: 5, costUsd: null });
  });

  it('sums the known costs of all attempts of a step', () => {
    const graph = graphOf('write -> judge?');
    const paid = given(graph)
      .when((run: RunState) => {
        const command = failed(attemptOf(run, 'write'), 100);
        if (command.type !== 'FailNode') return command;
        return { ...command, failure: { ...command.failure, usage: spent(7, 1), costUsd: 0.25 } };
      })
      .when((run: RunState) => {
        const { step, attempt } = attemptOf(run, 'write');
        const result = {
          step,
          attempt,
          output: { draft: 'Draft' },
          usage: spent(10, null),
          costUsd: 0.5,
          durationMs: 7,
        };
        return { type: 'CompleteNode', result };
      });
    const [step] = ranOf(paid.events).executions;
    expect(step?.usage).to.deep.equal({ inputTokens: 17, outputTokens: 1, costUsd: 0.75 });
  });

  it('sums each call of a run with a budget, also of an attempt that was lost', () => {
    const budget = { tokens: 1_000_000, usd: null, onExceeded: 'fail' } as const;
    const again = { texts: ['x'], tools: 0 };
    const lost = given(graphOf('write'), { budget })
      .when((run: RunState) => {
        const { step, attempt } = attemptOf(run, 'write');
        const call = { usage: spent(7, 1), costUsd: 0.25 };
        return { type: 'ReserveCall', next: { ...again, step, attempt, last: call, total: call } };
      })
      .when({ type: 'ClaimRun', reason: 'recovered' }, 'two');
    expect(ranOf(lost.events).executions[0]?.usage).to.deep.equal({ inputTokens: 7, outputTokens: 1, costUsd: 0.25 });
    const ended = lost.when((run: RunState) => {
      const { step, attempt } = attemptOf(run, 'write');
      const call = { usage: spent(10, 2), costUsd: 0.5 };
      return { type: 'CompleteNode', result: { step, attempt, output: { draft: 'x' }, ...call, durationMs: 7 } };
    });
    expect(ranOf(ended.events).executions[0]?.usage).to.deep.equal({ inputTokens: 17, outputTokens: 3, costUsd: 0.75 });
  });

  it('names who decided a pause, and its duration', () => {
    const { pauses } = ranOf(history('god-quorum'));
    expect(
      pauses.map(({ number, decision, waitedMs }) => [
        number,
        `${decision?.actor} ${decision?.action} by ${decision?.by}`,
        waitedMs,
      ]),
    ).to.deep.equal([
      [1, 'ann modify by human', 180_000],
      [2, 'eve reject by human', 120_000],
    ]);
    const { pauses: due } = ranOf(history('god-deadline'));
    expect(due.map(({ decision }) => decision?.by)).to.deep.equal(['deadline', 'human']);
  });

  it("shows a node that waits for a decision, and an override's route", () => {
    const events = history('god-modify');
    const paused = events.findIndex(({ type }) => type === 'RunPaused');
    expect(ranOf(events, paused).upcoming.map(({ node, awaits }) => [node, awaits])).to.deep.equal([
      ['write', 'pause'],
    ]);
    const byHuman = ranOf(events).edges.filter(({ by }) => by === 'human');
    expect(byHuman.map(({ reason, pause }) => [reason, pause])).to.deep.equal([['condition approve', 3]]);
  });

  it('shows the inherited steps of a fork', () => {
    const ran = ranOf(history('fork-of-branches'));
    expect(ran.inherited?.at).to.be.greaterThan(0);
    const inherited = ran.executions.filter(({ isInherited }) => isInherited);
    expect(inherited.map(({ node, state, attempts }) => [node, state, attempts.length])).to.deep.include([
      'right',
      'done',
      0,
    ]);
    expect(ran.executions.every(({ state }) => state === 'done')).to.equal(true);
  });

  it('has the same active steps as the fold, after every event of any history', () => {
    for (const [name, events] of [...goldenHistories(), ...goldenRecords()]) expectSameAsFold(events, name);
    for (let seed = 1; seed <= 12; seed += 1) {
      named(seed, () => expectSameAsFold(randomStory(seed).events, `seed ${seed}`));
    }
  });

  it('is the same if events are added at once or one by one', () => {
    const events = history('branches');
    const growing = recordOf([]);
    for (const event of events) {
      growing.add(event);
      expect(traceAt(growing, event.seq, event.at)).to.deep.equal(ranOf(events, event.seq));
    }
  });
});

function ranOf(events: readonly RunEvent[], seq = events.length - 1): ExecutionTrace {
  const ran = traceAt(recordOf(events), seq, events[seq]?.at ?? '');
  if (ran === null) throw new Error('nothing has run');
  return ran;
}

function expectSameAsFold(events: readonly RunEvent[], name: string): void {
  const record = recordOf(events);
  for (const { seq, at } of events) {
    const state = record.stateAt(seq);
    const ran = traceAt(record, seq, at);
    if (ran === null || state === null) throw new Error('nothing has run');
    const pause = state.phase.status === 'paused' ? state.phase.pause : null;
    const open = ran.pauses.filter(({ ended }) => ended === null).map((each) => each.number);
    expect(open, `${name} at ${seq}`).to.deep.equal(pause?.decision === null ? [pause.number] : []);
    if (ran.end === null) expect(inFlightUnseen(state, ran), `${name} at ${seq}`).to.deep.equal([]);
  }
}

/** The attempts that are active in the fold but not in the trace. */
function inFlightUnseen({ progress }: RunState, { executions }: ExecutionTrace): readonly number[] {
  const steps = executions.flatMap(({ panel, step, state }): readonly { step: number; state: string }[] => {
    return panel?.members ?? [{ step, state }];
  });
  const underWay = steps.filter((each) => each.state === 'active' || each.state === 'waiting');
  const inFlight = progress.frontier.filter((each) => each.active).map((each) => each.step);
  return inFlight.filter((step) => !underWay.some((each) => each.step === step));
}
