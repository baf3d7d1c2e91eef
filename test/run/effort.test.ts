import { expect } from 'chai';
import type { NodeUsage } from '../../src/generated/schemas.js';
import { compileChart } from '../../src/run/chart/machine.js';
import type { UsageTotals } from '../../src/run/effort.js';
import { effortAfter, NO_EFFORT, usageOf } from '../../src/run/effort.js';
import { refuseRun } from '../../src/run/request.js';
import type { RunState } from '../../src/run/state.js';
import type { Story, When } from '../support/given.js';
import {
  attemptOf,
  broke,
  completed,
  contextOf,
  failed,
  given,
  graphOf,
  graphWith,
  usedTool,
  RUN_ID,
  scored,
  wrote,
} from '../support/given.js';
import { runRequest } from '../support/open-engine.js';
import { spent } from '../support/usage.js';

const council = graphOf('write -> judge?; judge -approve-> polish; judge -rework-> write');
const START = Date.parse('2026-01-01T00:00:00.000Z');

describe('The effort of a run', () => {
  const costOf = ({ run }: Story): UsageTotals => usageOf(run.effort);

  it('starts with no calls and unknown tokens', () => {
    expect(usageOf(given(council, { pending: true }).run.effort)).to.deep.equal({
      calls: 0,
      repeatedCalls: 0,
      toldCalls: 0,
      inputTokens: null,
      outputTokens: null,
      cachedInputTokens: null,
      reasoningTokens: null,
      costUsd: null,
      pricedCalls: 0,
      byModel: [],
    });
  });

  it('sums the reported tokens of ended calls', () => {
    const story = given(council).whenAll(wrote('write'), scored('judge', 5), wrote('write'));
    const counts = { calls: 4, repeatedCalls: 0, toldCalls: 3 };
    expect(costOf(story)).to.include({ ...counts, inputTokens: 30, outputTokens: 15 });
  });

  it('counts the metered calls beside the sums', () => {
    const first = given(council).when(endedWith('write', { inputTokens: 0, outputTokens: 0 }));
    expect(costOf(first)).to.include({ calls: 2, toldCalls: 0, inputTokens: null, outputTokens: null });
    const second = first.when(scored('judge', 9));
    expect(costOf(second)).to.include({ calls: 3, toldCalls: 1, inputTokens: 10, outputTokens: 5 });
  });

  it('counts repeated and lost attempts, and the tokens of failed ones', () => {
    const again = given(council).when(broke('write', 100));
    expect(costOf(again)).to.include({ calls: 2, repeatedCalls: 1, toldCalls: 0, inputTokens: null });
    const costly = again.when((run: RunState) => {
      const command = failed(attemptOf(run, 'write'), 100);
      if (command.type !== 'FailNode') return command;
      return { ...command, failure: { ...command.failure, usage: { inputTokens: 7, outputTokens: 0 } } };
    });
    expect(costOf(costly)).to.include({
      calls: 3,
      repeatedCalls: 2,
      toldCalls: 1,
      inputTokens: 7,
      outputTokens: null,
    });
    const lost = given(council).when({ type: 'ClaimRun', reason: 'recovered' }, 'two').when(wrote('write'));
    expect(costOf(lost)).to.include({ calls: 3, repeatedCalls: 1, toldCalls: 1, inputTokens: 10 });
  });

  it('sums the cached and the reasoning tokens of the calls that report them', () => {
    const first = given(council).when(endedWith('write', { ...spent(10, 5), cachedInputTokens: 4 }));
    expect(costOf(first)).to.include({ cachedInputTokens: 4, reasoningTokens: null });
    const second = first.when(endedWith('judge', { ...spent(10, 5), cachedInputTokens: 2, reasoningTokens: 3 }));
    expect(costOf(second)).to.include({ inputTokens: 20, cachedInputTokens: 6, reasoningTokens: 3 });
  });

  it('takes 0 tokens for unknown only in events that record no cached tokens', () => {
    const older = given(council).when(endedWith('write', { inputTokens: 7, outputTokens: 0 }));
    expect(costOf(older)).to.include({ inputTokens: 7, outputTokens: null, toldCalls: 1 });
    const newer = given(council).when(endedWith('write', { ...spent(7, 0), cachedInputTokens: 0 }));
    expect(costOf(newer)).to.include({ inputTokens: 7, outputTokens: 0, cachedInputTokens: 0, toldCalls: 1 });
  });

  it('sums the known costs, failed calls among them, and counts the calls that have one', () => {
    const first = given(council).when(endedWith('write', spent(10, 5), null));
    expect(costOf(first)).to.include({ costUsd: null, pricedCalls: 0, toldCalls: 1 });
    const free = first.when(endedWith('judge', spent(10, 5), 0));
    expect(costOf(free)).to.include({ costUsd: 0, pricedCalls: 1 });
    const paid = given(council)
      .when((run: RunState) => {
        const command = failed(attemptOf(run, 'write'), 100);
        if (command.type !== 'FailNode') return command;
        return { ...command, failure: { ...command.failure, usage: spent(7, 1), costUsd: 0.25 } };
      })
      .when(endedWith('write', spent(10, 5), 0.5));
    expect(costOf(paid)).to.include({ costUsd: 0.75, pricedCalls: 2, calls: 3, repeatedCalls: 1 });
    expect(costOf(paid).byModel.map(({ model, costUsd }) => [model, costUsd])).to.deep.equal([['model-1', 0.75]]);
  });

  it('sums costs as decimals, of each model and in all', () => {
    const story = given(council).whenAll(endedWith('write', spent(10, 5), 0.1), endedWith('judge', spent(10, 5), 0.2));
    expect(costOf(story)).to.include({ costUsd: 0.3 });
    expect(costOf(story).byModel.map(({ costUsd }) => costUsd)).to.deep.equal([0.3]);
  });

  it('keeps the costs of calls that ended before an instance was lost', () => {
    const before = given(council).when(endedWith('write', spent(10, 5), 0.5));
    const lost = before
      .when({ type: 'ClaimRun', reason: 'recovered' }, 'two')
      .when(endedWith('judge', spent(10, 5), 0.25));
    expect(costOf(lost)).to.include({ costUsd: 0.75, pricedCalls: 2, repeatedCalls: 1 });
  });

  it('counts the cost of an attempt for each of its rounds of tools', () => {
    const story = given(council).whenAll(usedTool('write'), endedWith('write', spent(20, 5), 0.5));
    expect(costOf(story)).to.include({ costUsd: 0.5, pricedCalls: 2, calls: 3 });
  });

  it('comes from the calls, also if the event that ends the run lacks their cost', () => {
    const { events } = given(graphOf('write -> judge?')).whenAll(
      endedWith('write', spent(10, 5), 0.5),
      endedWith('judge', spent(10, 5), 0.25),
    );
    const older = { calls: 2, repeatedCalls: 0, toldCalls: 2, inputTokens: 20, outputTokens: 10, byModel: [] };
    const effort = events.reduce((before, event) => {
      const isEnd = event.type === 'RunCompleted';
      return effortAfter(before, isEnd ? { ...event, data: { ...event.data, usage: older } } : event, null);
    }, NO_EFFORT);
    expect(usageOf(effort)).to.include({ costUsd: 0.75, pricedCalls: 2, inputTokens: 20 });
  });

  it('counts the calls of all members, and forgets those that were discarded when their panel closed', () => {
    const members = ['a', 'b', 'c'].map((id) => ({ id, label: id }));
    const panel = { id: 'panel', role: 'panel' as const, members, quorum: 1, graceMs: 0 };
    const edge = { id: 'e', source: 'panel', target: 'write', condition: null };
    const graph = graphWith(
      [
        { ...panel, maxOutputTokens: 100 },
        { id: 'write', maxOutputTokens: 100 },
      ],
      [edge],
    );
    const answered: When = ({ progress }) => {
      const at = progress.frontier.find(({ seat }) => seat?.member === 'b');
      if (at === undefined) throw new Error('"b" is not at work');
      return completed(at, { answer: 'Yes' });
    };
    for (const budget of [undefined, { tokens: 1_000_000, usd: null, onExceeded: 'fail' as const }]) {
      const begun = given(graph, { ...(budget !== undefined && { budget }) });
      expect(costOf(begun)).to.include({ calls: 3, toldCalls: 0 });
      const [reserved = 0] = begun.run.spending?.reserved.map(({ reservation }) => reservation.tokens) ?? [];
      const closed = begun.when(answered);
      expect(costOf(closed)).to.include({ calls: 4, toldCalls: 1, inputTokens: 10, outputTokens: 5 });
      expect(closed.run.effort.open.map(({ step }) => step)).to.deep.equal([4]);
      // A discarded call counts as its reservation.
      expect(closed.run.spending?.spent.tokens ?? null).to.equal(budget === undefined ? null : 15 + 2 * reserved);
      expect(closed.run.spending?.reserved.map(({ step }) => step) ?? [4]).to.deep.equal([4]);
      const ended = closed.when(wrote('write'));
      expect(costOf(ended)).to.include({ calls: 4, toldCalls: 2 });
      expect(ended.run.effort.open).to.deep.equal([]);
    }
  });

  it('counts one call for each round of tools', () => {
    const story = given(council).whenAll(usedTool('write'), usedTool('write'), wrote('write'));
    expect(costOf(story)).to.include({ calls: 3, toldCalls: 2, inputTokens: 10 });
  });

  describe('of a run with a budget', () => {
    const story = given(council, { budget: { tokens: 1_000_000, usd: null, onExceeded: 'fail' } });
    const rounds = [asksAgain('write', spent(10, 5), 0.5), asksAgain('write', spent(20, 5), 0.25)];
    const twoRounds = story.whenAll(usedTool('write'), ...rounds.slice(0, 1), usedTool('write'), ...rounds.slice(1));
    const counted = { calls: 3, toldCalls: 2, pricedCalls: 2, inputTokens: 30, outputTokens: 10, costUsd: 0.75 };

    it('holds the usage of each answered round while its attempt goes on, and after a crash', () => {
      expect(costOf(twoRounds)).to.include({ ...counted, repeatedCalls: 0 });
      const lost = twoRounds.when({ type: 'ClaimRun', reason: 'recovered' }, 'two');
      expect(costOf(lost)).to.include({ ...counted, calls: 4, repeatedCalls: 1 });
    });

    it('holds the usage of every round of an attempt that fails or completes', () => {
      const lastCall = { usage: spent(7, 1), costUsd: 0.125 };
      const total = { usage: spent(37, 11), costUsd: 0.875 };
      const withLast = { ...counted, toldCalls: 3, pricedCalls: 3, inputTokens: 37, outputTokens: 11, costUsd: 0.875 };
      const end = (run: RunState) => ({ ...total, lastCall, step: attemptOf(run, 'write').step, attempt: 1 });
      const failure = { kind: 'empty_answer', message: 'no', retryable: false };
      const failedRun = twoRounds.when((run) => {
        return { type: 'FailNode', failure: { ...failure, ...end(run) }, retryInMs: null };
      });
      expect(costOf(failedRun)).to.include(withLast);
      const completed = twoRounds.when((run) => {
        return { type: 'CompleteNode', result: { ...end(run), output: { draft: 'x' }, durationMs: 1 } };
      });
      expect(costOf(completed)).to.include({ ...withLast, calls: 4 });
      expect(completed.run.spending?.spent.tokens).to.equal(37 + 11);
    });

    it('holds the usage of the other rounds if one reports none', () => {
      const unknown = { inputTokens: null, outputTokens: null };
      const silent = twoRounds.whenAll(asksAgain('write', unknown, null), endedWith('write', spent(3, 2), 0.125));
      const more = { calls: 5, toldCalls: 3, pricedCalls: 3, inputTokens: 33, outputTokens: 12, costUsd: 0.875 };
      expect(costOf(silent)).to.include(more);
    });

    it('counts no call that the budget has stopped', () => {
      const stopped = given(council, { budget: { tokens: 9_000, usd: null, onExceeded: 'fail' } });
      const over = stopped.whenAll(usedTool('write'), asksAgain('write', spent(8_900, 5), 0.5));
      expect(over.facts.map(({ type }) => type)).to.deep.equal(['NodeFailed', 'RunFailed']);
      expect(costOf(over)).to.include({ calls: 1, toldCalls: 1, inputTokens: 8_900, outputTokens: 5, costUsd: 0.5 });
    });
  });

  it('holds the usage of every round of a failed attempt', () => {
    const rounds = given(council).when(usedTool('write'));
    const over = rounds.when((run) => {
      const command = failed(attemptOf(run, 'write'), 100);
      if (command.type !== 'FailNode') return command;
      return { ...command, failure: { ...command.failure, usage: spent(30, 10), costUsd: 0.75 } };
    });
    const all = { toldCalls: 2, pricedCalls: 2, inputTokens: 30, outputTokens: 10, costUsd: 0.75 };
    expect(costOf(over)).to.include({ ...all, calls: 3, repeatedCalls: 1 });
  });

  it('is counted per model, in the order of their first calls', () => {
    const parallel = given(graphOf('plan -> left, right')).when(wrote('plan'));
    expect(usageOf(parallel.run.effort).byModel.map(({ model, calls }) => [model, calls])).to.deep.equal([
      ['model-1', 3],
    ]);
    const graph = graphOf('write -> judge?');
    const nodes = graph.nodes.map((node) => (node.id === 'judge' ? { ...node, model: 'model-2' } : node));
    const mixed = given({ ...graph, nodes }).whenAll(wrote('write'), scored('judge', 9));
    const tokens = { inputTokens: 10, outputTokens: 5, cachedInputTokens: null, reasoningTokens: null };
    const one = { calls: 1, repeatedCalls: 0, toldCalls: 1, ...tokens, costUsd: null, pricedCalls: 0 };
    expect(usageOf(mixed.run.effort).byModel).to.deep.equal([
      { model: 'model-1', ...one },
      { model: 'model-2', ...one },
    ]);
  });

  it('is in the event that ends the run, completed, failed or refused', () => {
    const toldBy = ({ events }: Pick<Story, 'events'>): unknown => {
      const last = events.at(-1);
      return last?.type === 'RunCompleted' || last?.type === 'RunFailed' ? last.data.usage : null;
    };
    const completed = given(council).whenAll(wrote('write'), scored('judge', 9), wrote('polish'));
    expect(toldBy(completed)).to.deep.equal(costOf(completed)).and.to.include({ calls: 3, inputTokens: 30 });
    const cancelled = given(council).whenAll(wrote('write'), { type: 'CancelRun', actor: null });
    expect(toldBy(cancelled)).to.deep.equal(costOf(cancelled)).and.to.include({ calls: 2, inputTokens: 10 });
    const paused = given(council, { godMode: true });
    const rejected = paused.at(new Date(START).toISOString()).whenDecided({ action: 'reject', modifiedState: null });
    expect(toldBy(rejected)).to.deep.equal(costOf(paused)).and.to.include({ calls: 0, inputTokens: null });
    const failure = { kind: 'not_runnable', error: 'No node', node: null } as const;
    const request = runRequest(RUN_ID);
    const [, refused] = refuseRun(compileChart(request.graph), request, { failure, context: contextOf('one') }).facts;
    expect(refused?.data).to.deep.include({ usage: costOf(given(council, { pending: true })) });
  });

  it('sums the time of ended pauses', () => {
    const waitedMs = ({ run }: Story): number => run.effort.waitedMs;
    const at = (ms: number): string => new Date(START + ms).toISOString();
    const paused = given(council, { godMode: true });
    expect(waitedMs(paused)).to.equal(0);
    const approved = paused.at(at(5_000)).whenApproved();
    expect(waitedMs(approved)).to.equal(5_000);
    const again = approved.when(wrote('write'), 'one', at(6_000));
    expect(waitedMs(again)).to.equal(5_000);
    const cancelled = again.when({ type: 'CancelRun', actor: null }, 'one', at(6_750));
    expect(waitedMs(cancelled)).to.equal(5_750);
    expect(waitedMs(again.at(at(7_000)).whenDecided({ action: 'reject', modifiedState: null }))).to.equal(6_000);
  });
});

/** The node asks to make another call after one with this usage and cost. */
function asksAgain(node: string, usage: NodeUsage, costUsd: number | null): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    const call = { usage, costUsd };
    return { type: 'ReserveCall', next: { step, attempt, texts: ['x'], tools: 0, last: call, total: call } };
  };
}

/** Ends the node's active attempt with a result, and the usage and cost of its call. */
function endedWith(node: string, usage: NodeUsage, costUsd?: number | null): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    const output = node === 'judge' ? { score: 9, feedback: 'Good' } : { draft: 'Draft' };
    const cost = costUsd === undefined ? {} : { costUsd };
    return { type: 'CompleteNode', result: { step, attempt, output, usage, ...cost, durationMs: 7 } };
  };
}
