import { expect } from 'chai';
import type { Graph, GraphNode, NodeOutput, NodeUsage, RunBudget } from '../../src/generated/schemas.js';
import {
  budgetOfChild,
  costReserved,
  exceededLimits,
  mostTokens,
  neededFor,
  reservationFor,
  unpricedModel,
} from '../../src/run/budget/spending.js';
import { BudgetRefused } from '../../src/run/errors.js';
import { buildForkRequest } from '../../src/run/fork.js';
import { pauseViewOf } from '../../src/run/pauses/pause-view.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import type { RunState } from '../../src/run/state.js';
import type { Story, When } from '../support/given.js';
import { attemptOf, begun, broke, given, graphOf, activeNodes } from '../support/given.js';
import { plainName } from '../support/open-engine.js';

const OUTPUT = { maxOutputTokens: 100 };
const line = graphOf('plan -> write', OUTPUT);
const twoBranches = graphOf('plan -> left, right; left, right -> join', OUTPUT);
const withFallback = graphOf('plan -> write', { ...OUTPUT, fallbacks: ['two/model-2'] });
/** A budget that no test reaches. */
const AMPLE = 1_000_000;
const claim = { type: 'ClaimRun', reason: 'recovered' } as const;

function budget(
  tokens: number | null,
  onExceeded: RunBudget['onExceeded'] = 'fail',
  usd: number | null = null,
): RunBudget {
  return { tokens, usd, onExceeded };
}

/** The node's attempt ends with a draft; tokens of the prompt and the answer, a cent each. */
function answered(node: string, tokens: number | null, draft = `by ${node}`): When {
  return ended(node, usageOf(tokens), { draft });
}

function ended(node: string, usage: NodeUsage, output: NodeOutput): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    return { type: 'CompleteNode', result: { step, attempt, output, usage, costUsd: costOf(usage), durationMs: 1 } };
  };
}

function usageOf(tokens: number | null): NodeUsage {
  return { inputTokens: tokens === null ? null : tokens - 1, outputTokens: tokens === null ? null : 1 };
}

function costOf({ inputTokens, outputTokens }: NodeUsage): number | null {
  return inputTokens === null || outputTokens === null ? null : (inputTokens + outputTokens) / 100;
}

/** The node asks to make another call after one of some tokens. */
function asksAgain(node: string, tokens: number | null, total = tokens): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    const call = (of: number | null) => ({ usage: usageOf(of), costUsd: costOf(usageOf(of)) });
    return {
      type: 'ReserveCall',
      next: { step, attempt, texts: ['x'.repeat(30)], tools: 0, last: call(tokens), total: call(total) },
    };
  };
}

/** The provider refuses the key: the node asks its fallback, if it has one. */
function refused(node: string): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    const failure = { step, attempt, kind: 'unauthorized', message: 'no', retryable: false };
    return { type: 'FailNode', failure, retryInMs: null };
  };
}

/** What the steps that have begun in the last append reserved, in tokens. */
function reserved({ facts }: Story): readonly number[] {
  return facts.flatMap(({ type, data }) =>
    (type === 'NodeStarted' || type === 'CallReserved') && data.reserved !== undefined ? [data.reserved.tokens] : [],
  );
}

function spent({ spending }: RunState): unknown {
  return spending === null ? null : reservationFor(spending.spent);
}

/** Tokens that the first node of a graph reserves. */
function firstOf(graph: Graph): number {
  return reserved(given(graph, { budget: budget(AMPLE) }))[0] ?? 0;
}

/** The total that a run needs when its second frontier starts, after a first call of ten tokens. */
function secondOf(graph: Graph): number {
  const story = given(graph, { budget: budget(AMPLE) }).when(answered('plan', 10));
  return 10 + reserved(story).reduce((sum, each) => sum + each, 0);
}

describe('A run with a budget', () => {
  it('reserves the prompt and the longest answer of each call', () => {
    const [tokens = 0] = reserved(given(line, { budget: budget(AMPLE) }));
    const story = given(line, { budget: budget(AMPLE) });
    expect(tokens).to.be.greaterThan(100);
    expect(story.facts.find(({ type }) => type === 'NodeStarted')?.data).to.deep.include({
      reserved: { tokens, usd: tokens / 100 },
    });
    expect(firstOf(graphOf('plan'))).to.equal(tokens - 100 + 8_192);
  });

  it('records no reservation without a budget', () => {
    expect(given(line).facts.every(({ data }) => !('reserved' in data))).to.equal(true);
    expect(summaryOf(given(line).run)).to.not.have.any.keys('budget', 'pauseReason');
  });

  it('counts the recorded usage and cost, and of a call without usage its reservation', () => {
    const known = given(line, { budget: budget(AMPLE) }).when(answered('plan', 10));
    expect(spent(known.run)).to.deep.equal({ tokens: 10, usd: 0.1 });
    const [tokens = 0] = reserved(given(line, { budget: budget(AMPLE) }));
    const unknown = given(line, { budget: budget(AMPLE) }).when(answered('plan', null));
    expect(spent(unknown.run)).to.deep.equal({ tokens, usd: tokens / 100 });
    const failed = given(line, { budget: budget(AMPLE) }).when(broke('plan', 0));
    expect(spent(failed.run)).to.deep.equal({ tokens, usd: tokens / 100 });
  });

  it('counts a call whose output is unknown as its reservation, or as its prompt if that is more', () => {
    for (const [inputTokens, counted] of [
      [1, firstOf(line)],
      [5_000, 5_000],
    ] as const) {
      const prompt = { inputTokens, outputTokens: null };
      const story = given(line, { budget: budget(AMPLE) }).when(ended('plan', prompt, { draft: 'd' }));
      expect(spent(story.run)).to.deep.include({ tokens: counted });
    }
  });

  it('counts a call that was cut off as its reservation, and reserves its repeat', () => {
    const first = firstOf(line);
    const story = given(line, { budget: budget(AMPLE) }).when(claim, 'two');
    expect(spent(story.run)).to.deep.include({ tokens: first });
    expect(story.run.spending?.reserved.map(({ reservation }) => reservation.tokens)).to.deep.equal([first]);
    const cancelled = story.when({ type: 'CancelRun', actor: null });
    expect(spent(cancelled.run)).to.deep.include({ tokens: 2 * first });
  });

  it('shows the budget and what is spent', () => {
    const story = given(line, { budget: budget(AMPLE, 'finish', 9.5) }).when(answered('plan', 10));
    expect(summaryOf(story.run).budget).to.deep.equal({
      tokens: AMPLE,
      usd: 9.5,
      onExceeded: 'finish',
      spentTokens: 10,
      spentUsd: 0.1,
    });
  });

  it('does not know what it has spent in dollars on a model without a price', () => {
    const unpriced = graphOf('plan -> write', { ...OUTPUT, model: 'unpriced' });
    const story = given(unpriced, { budget: budget(AMPLE) }).when(answered('plan', null));
    expect(spent(story.run)).to.deep.include({ usd: null });
  });
});

describe('A call that would pass the budget', () => {
  it('is made if the budget just suffices, and else fails the run', () => {
    const needed = secondOf(line);
    expect(activeNodes(given(line, { budget: budget(needed) }).when(answered('plan', 10)).run)).to.deep.equal([
      'write',
    ]);
    const story = given(line, { budget: budget(needed - 1) }).when(answered('plan', 10));
    story.then(
      'NodeCompleted plan 1.1 -> write',
      `RunFailed budget_exceeded: Stopped at the budget: $0.1 and 10 tokens spent of ${needed - 1} tokens. ` +
        `The next calls need a total budget of at least ${needed} tokens`,
    );
  });

  it('fails the run before its first node', () => {
    const story = given(line, { budget: budget(50) });
    expect(story.run.phase).to.deep.include({ status: 'failed' });
    expect(story.facts.map(({ type }) => type)).to.not.include('NodeStarted');
  });

  it('is made if the budget in dollars is exactly the decimal sum of what is spent and reserved', () => {
    const three = graphOf('plan -> write; write -> polish', OUTPUT);
    const results = Array.from({ length: 40 }, (_, index) => {
      const [first, second] = [7 * index + 1, 3 * index + 2];
      const run = (usd: number | null, tokens: number | null = null): Story =>
        given(three, { budget: budget(tokens, 'fail', usd) }).whenAll(
          answered('plan', first),
          answered('write', second),
        );
      const cents = first + second + (reserved(run(null, AMPLE))[0] ?? 0);
      return [run(cents / 100).run.phase.status, run((cents - 1) / 100).run.phase.status];
    });
    expect(results).to.deep.equal(results.map(() => ['running', 'failed']));
  });

  it('is made if $0.20 are reserved and $0.10 of $0.30 are spent, also beside a million dollars', () => {
    for (const [more, usd] of [
      [0, 0.3],
      [1_000_000, 1_000_000.3],
    ] as const) {
      const cost = (amount: number) => costReserved({ tokens: 1, usd: amount });
      const spent = { tokens: 1, usd: (cost(0.1).usd ?? 0n) + (cost(more).usd ?? 0n) };
      const spending = { budget: budget(null, 'pause', usd), spent, reserved: [], stopped: [], hasPaused: false };
      const needed = neededFor(spending, [cost(0.2)]);
      expect(exceededLimits(spending.budget, needed)).to.deep.equal([]);
      expect(reservationFor(needed).usd).to.equal(usd);
      expect(exceededLimits(spending.budget, neededFor(spending, [cost(0.2), cost(1e-12)]))).to.deep.equal(['usd']);
    }
  });

  it('is measured in US dollars too', () => {
    const needed = secondOf(line) / 100;
    const suffices = given(line, { budget: budget(null, 'fail', needed + 1e-9) }).when(answered('plan', 10));
    expect(activeNodes(suffices.run)).to.deep.equal(['write']);
    const story = given(line, { budget: budget(null, 'fail', needed - 0.01) }).when(answered('plan', 10));
    expect(story.run.phase.status).to.equal('failed');
  });

  it('may be a retry, a fallback or a repeat after a takeover', () => {
    const first = firstOf(line);
    for (const tokens of [first, 2 * first]) {
      const retry = given(line, { budget: budget(tokens) }).when(broke('plan', 0));
      expect(retry.run.phase.status).to.equal(tokens === first ? 'failed' : 'running');
      const takeover = given(line, { budget: budget(tokens) }).when(claim, 'two');
      expect(takeover.run.phase.status).to.equal(tokens === first ? 'failed' : 'running');
    }
    const story = given(withFallback, { budget: budget(first) }).when(refused('plan'));
    expect(story.facts.map(({ type }) => type)).to.deep.equal(['NodeFailed', 'RunFailed']);
  });

  it('fails the run with an error that counts the calls that were cut off', () => {
    const first = firstOf(line);
    const story = given(line, { budget: budget(first) }).when(claim, 'two');
    expect(spent(story.run)).to.deep.include({ tokens: first });
    const failed = story.facts.find(({ type }) => type === 'RunFailed');
    expect(failed?.data).to.have.property('error').that.includes(`${first} tokens spent of ${first} tokens`);
  });

  it('stops a whole frontier, or none of it', () => {
    const needed = secondOf(twoBranches);
    const story = given(twoBranches, { budget: budget(needed) }).when(answered('plan', 10));
    expect(activeNodes(story.run)).to.deep.equal(['left', 'right']);
    const stopped = given(twoBranches, { budget: budget(needed - 1) }).when(answered('plan', 10));
    expect(stopped.facts.map(({ type }) => type)).to.deep.equal(['NodeCompleted', 'RunFailed']);
  });
});

describe('A further call of an attempt', () => {
  it('settles the call before and reserves its own worst case', () => {
    const story = given(line, { budget: budget(AMPLE) }).when(asksAgain('plan', 20));
    expect(reserved(story)).to.deep.equal([110]);
    expect(spent(story.run)).to.deep.equal({ tokens: 20, usd: 0.2 });
    const again = story.when(claim, 'two');
    expect(spent(again.run), 'a crash between two calls loses nothing').to.deep.equal({ tokens: 130, usd: 1.3 });
  });

  it('counts by the last call when the attempt ends', () => {
    const story = given(line, { budget: budget(AMPLE) }).when(asksAgain('plan', 20));
    const completed = story.when((run) => {
      const lastCall = { usage: usageOf(7), costUsd: 0.07 };
      const { step, attempt } = attemptOf(run, 'plan');
      const output = { draft: 'd' };
      return { type: 'CompleteNode', result: { step, attempt, output, usage: usageOf(27), durationMs: 1, lastCall } };
    });
    expect(spent(completed.run)).to.deep.equal({ tokens: 27, usd: 0.27 });
    const discarded = story.when(broke('plan', 0));
    expect(spent(discarded.run)).to.deep.equal({ tokens: 130, usd: 1.3 });
  });

  it('that would pass the budget ends its attempt', () => {
    const story = given(line, { budget: budget(firstOf(line)) }).when(asksAgain('plan', firstOf(line) - 50));
    expect(story.facts.map(({ type }) => type)).to.deep.equal(['NodeFailed', 'RunFailed']);
    expect(story.facts[0]?.data).to.include({ kind: 'budget_exceeded' });
    expect(story.facts[0]?.data)
      .to.have.property('message')
      .that.includes(`${firstOf(line) - 50} tokens spent of`);
    expect(spent(story.run)).to.deep.include({ tokens: firstOf(line) - 50 });
  });

  it('is not recorded without a budget', () => {
    given(line).when(asksAgain('plan', 20)).then();
  });
});

describe('A run that finishes at its budget', () => {
  it('completes with the current draft', () => {
    const story = given(line, { budget: budget(secondOf(line) - 1, 'finish') }).when(answered('plan', 10));
    story.then('NodeCompleted plan 1.1 -> write', 'RunCompleted: by plan (null, 1)');
    expect(story.facts[1]?.data).to.include({ endedBy: 'budget' });
  });

  it('fails without a draft', () => {
    const story = given(line, { budget: budget(firstOf(line), 'finish') }).when(broke('plan', 0));
    expect(story.run.phase).to.deep.include({ status: 'failed' });
  });

  it('waits for the other branches, whose calls are made', () => {
    const needed = secondOf(twoBranches);
    const started = given(twoBranches, { budget: budget(needed + 10, 'finish') }).when(answered('plan', 10));
    const waiting = started.when(broke('left', 0));
    waiting.then('NodeFailed left 2.1: The model is ill');
    const freed = waiting.when(answered('right', 2));
    expect(freed.run.phase, 'what is freed may suffice').to.include({ status: 'running' });
    expect(activeNodes(freed.run)).to.deep.equal(['left']);
    const over = waiting.when(answered('right', null));
    over.then('NodeCompleted right 3.1 -> join', 'RunCompleted: ## Right\nby right (null, 2)');
  });
});

describe('The drafts of parallel branches in a run that finishes at its budget', () => {
  const finished = (graph: Graph, ...before: readonly When[]): Story =>
    given(graph, { budget: budget(secondOf(graph), 'finish') }).whenAll(...before);
  const above = (node: string): When => answered(node, 5_000);

  it('are those that a pause shows before their join, in the order of its edges', () => {
    const before = [answered('plan', 10), answered('right', 10)];
    const story = finished(twoBranches, ...before).when(above('left'));
    const joined = '## Left\nby left\n\n## Right\nby right';
    story.then('NodeCompleted left 2.1 -> join', `RunCompleted: ${joined} (null, 3)`);
    const paused = given(twoBranches, { godMode: true }).whenApproved();
    const before2 = paused.when(answered('plan', 1)).whenApproved();
    const shown = before2.whenAll(answered('right', 1), answered('left', 1));
    expect(shown.run.progress.shown.draft).to.equal(joined);
  });

  it('are joined before different nodes, and with those that have ended, in the order of the nodes', () => {
    const graph = graphOf('plan -> left, right, note; left -> more; right -> other', OUTPUT);
    const story = finished(graph, answered('plan', 10), answered('note', 10), answered('right', 10));
    const parts = ['Note', 'Left', 'Right'].map((label) => `## ${label}\nby ${label.toLowerCase()}`);
    story.when(above('left')).then('NodeCompleted left 2.1 -> more', `RunCompleted: ${parts.join('\n\n')} (null, 4)`);
  });

  it('are one draft if the branches have written none since they parted', () => {
    const story = given(twoBranches, { budget: budget(secondOf(twoBranches) - 1, 'finish') });
    story.when(answered('plan', 10)).then('NodeCompleted plan 1.1 -> left right', 'RunCompleted: by plan (null, 1)');
  });

  it('hold nothing of a branch whose step was stopped, and have the lowest score', () => {
    const graph = graphOf('plan -> left, judge?; judge -> right', OUTPUT);
    const needed = secondOf(graph);
    const story = given(graph, { budget: budget(needed, 'finish') }).whenAll(answered('plan', 10), broke('left', 0));
    const over = story.when(ended('judge', usageOf(null), { score: 4, feedback: 'More' }));
    over.then('NodeCompleted judge 3.1 -> right', 'RunCompleted: by plan (4, 1)');
    expect(over.run.progress.shown).to.include({ draft: 'by plan', score: 4, verdict: 'rework' });
  });
});

describe('A run that pauses at its budget', () => {
  const paused = (options: { readonly godMode?: boolean } = {}): Story =>
    given(line, { ...options, budget: budget(secondOf(line) - 1, 'pause') }).when(answered('plan', 10));

  it('waits before the next nodes, without God Mode', () => {
    const story = paused();
    story.then(
      'NodeCompleted plan 1.1 -> write',
      'RunPaused 1 before write for the budget',
      'RunReleased paused 1 by one',
    );
    expect(summaryOf(story.run)).to.deep.include({
      pauseReason: 'budget',
      executionMode: 'auto-pilot',
      session: { nextNodes: ['write'], currentDraft: 'by plan' },
    });
    expect(pauseViewOf(story.run)?.pause?.number).to.equal(1);
  });

  it('has no session before', () => {
    expect(pauseViewOf(given(line, { budget: budget(AMPLE, 'pause') }).run)).to.equal(null);
  });

  it('continues with a larger budget, and does not pause at later nodes', () => {
    const needed = secondOf(line);
    const story = paused().whenDecided({ action: 'approve', modifiedState: null, budget: { tokens: needed } });
    expect(story.facts.map(({ type }) => type)).to.deep.equal([
      'GateDecided',
      'RunClaimed',
      'RunResumed',
      'NodeStarted',
    ]);
    expect(story.run.spending?.budget).to.deep.equal({ tokens: needed, usd: null, onExceeded: 'pause' });
    const done = story.when(answered('write', 10));
    expect(done.run.phase).to.include({ status: 'completed', finalDraft: 'by write' });
    expect(pauseViewOf(done.run), 'its session stays').to.not.equal(null);
  });

  it('refuses an approval without a budget or with one too small, and a change of the state', () => {
    const needed = secondOf(line);
    const refusal = (choice: Parameters<Story['whenDecided']>[0]): BudgetRefused['data'] => {
      try {
        paused().whenDecided(choice);
      } catch (error) {
        if (error instanceof BudgetRefused) return error.data;
        throw error;
      }
      throw new Error('The decision was accepted');
    };
    const reason = `The next calls need a total budget of at least ${needed} tokens`;
    const approve = { action: 'approve', modifiedState: null } as const;
    expect(refusal(approve)).to.deep.include({ loc: ['budget'], reason });
    expect(refusal({ ...approve, budget: { usd: 50 } })).to.deep.include({ loc: ['budget', 'tokens'] });
    expect(refusal({ ...approve, budget: { tokens: needed - 1 } })).to.deep.include({
      loc: ['budget', 'tokens'],
      reason,
    });
    expect(refusal({ ...approve, budget: { tokens: AMPLE, usd: 0.01 } })).to.deep.include({ loc: ['budget', 'usd'] });
    expect(refusal({ action: 'modify', modifiedState: {} })).to.deep.include({ loc: ['action'] });
  });

  it('refuses a limit in US dollars if a later model has no price', () => {
    const graph = graphOf('plan -> write', OUTPUT);
    const unpriced = {
      ...graph,
      nodes: graph.nodes.map((node) => (node.id === 'write' ? { ...node, model: 'unpriced-1' } : node)),
    };
    const story = given(unpriced, { budget: budget(10, 'pause') });
    const approve = (limits: object): Story =>
      story.whenDecided({ action: 'approve', modifiedState: null, budget: limits });
    expect(() => approve({ tokens: AMPLE, usd: 5 })).to.throw(BudgetRefused, 'Model "unpriced-1" has no price');
    expect(approve({ tokens: AMPLE }).run.phase.status).to.equal('running');
  });

  it('ends when it is rejected', () => {
    const story = paused().whenDecided({ action: 'reject', modifiedState: null });
    story.then('GateDecided 1 reject', 'RunFailed rejected: Rejected by the user in God Mode');
  });

  it('repeats a step that the budget has stopped', () => {
    const first = firstOf(line);
    for (const when of [broke('plan', 0), claim, asksAgain('plan', first)]) {
      const story = given(line, { budget: budget(first, 'pause') }).when(when);
      expect(story.run.phase.status).to.equal('paused');
      expect(story.facts.at(-2)?.data).to.deep.include({ nextNodes: ['plan'], reason: 'budget' });
      expect(pauseViewOf(story.run)?.branches.map(({ node }) => node)).to.deep.equal(['plan']);
      const resumed = story.whenDecided({ action: 'approve', modifiedState: null, budget: { tokens: 3 * first } });
      expect(attemptOf(resumed.run, 'plan')).to.include({ step: 1, attempt: 2 });
      expect(resumed.when(answered('plan', 1)).run.phase.status).to.equal('running');
    }
  });

  it('needs for a step that was stopped between two calls all its calls again', () => {
    const first = firstOf(line);
    const twoCalls = (story: Story): Story =>
      story.when(asksAgain('plan', first - 110)).when(asksAgain('plan', 15, first - 95));
    const story = twoCalls(given(line, { budget: budget(first, 'pause') }));
    const reason = `The next calls need a total budget of at least ${2 * first - 80} tokens`;
    expect(story.facts[0]?.data)
      .to.have.property('message')
      .that.includes(`${first - 95} tokens spent of ${first} tokens. ${reason}`);
    const approve = (tokens: number): Story =>
      story.whenDecided({ action: 'approve', modifiedState: null, budget: { tokens } });
    expect(() => approve(2 * first - 81)).to.throw(BudgetRefused, reason);
    expect(reserved(twoCalls(approve(2 * first - 80))), 'its next call comes within the budget').to.deep.equal([110]);
  });

  it('asks the fallback that was due', () => {
    const story = given(withFallback, { budget: budget(firstOf(line), 'pause') }).when(refused('plan'));
    const resumed = story.whenDecided({ action: 'approve', modifiedState: null, budget: { tokens: AMPLE } });
    expect(attemptOf(resumed.run, 'plan')).to.include({ attempt: 2, model: 'two/model-2' });
  });

  it('waits for the other branches', () => {
    const story = given(twoBranches, { budget: budget(secondOf(twoBranches), 'pause') })
      .when(answered('plan', 10))
      .when(broke('left', 0));
    expect(story.run.phase.status).to.equal('running');
    const over = story.when(answered('right', null));
    over.then(
      'NodeCompleted right 3.1 -> join',
      'RunPaused 1 before left for the budget',
      'RunReleased paused 1 by one',
    );
    const resumed = over.whenDecided({ action: 'approve', modifiedState: null, budget: { tokens: AMPLE } });
    expect(activeNodes(resumed.run)).to.deep.equal(['left']);
    expect(activeNodes(resumed.when(answered('left', 5)).run)).to.deep.equal(['join']);
  });

  it('pauses for the budget after the pause of God Mode, where the rule of approvers does not apply', () => {
    const node: Partial<GraphNode> = { ...OUTPUT, approvals: { quorum: 2 } };
    const story = given(graphOf('plan', node), { godMode: true, budget: budget(50, 'pause') });
    const [ann, ben] = ['ann', 'ben'].map((actor) => ({ actor, scopes: new Set(['approve' as const]) }));
    const approve = { action: 'approve', modifiedState: null } as const;
    const both = story.whenDecided(approve, 'one', ann).whenDecided(approve, 'one', ben);
    expect(both.facts.at(-2)?.data).to.include({ gate: 2, reason: 'budget' });
    const resumed = both.whenDecided({ ...approve, budget: { tokens: AMPLE } });
    expect(activeNodes(resumed.run)).to.deep.equal(['plan']);
  });
});

describe('The budget of a run that a council starts', () => {
  const spending = given(line, { budget: budget(AMPLE, 'fail', 9) }).run.spending;
  const own = (tokens: number | null): RunBudget => budget(tokens, 'pause');

  for (const [what, given, tokens] of [
    ['its share without one of its own', undefined, 50],
    ['its share if its own has no limit', own(null), 50],
    ['its share if its own is larger', own(60), 50],
    ['its own if that is smaller', own(40), 40],
  ] as const) {
    it(`is ${what}`, () => {
      const [call] = spending?.reserved ?? [];
      if (spending === null || call === undefined) throw new Error('No call is reserved');
      const share = { ...call, step: 2, index: 0, reservation: { tokens: 50, usd: 0n } };
      const child = budgetOfChild({ ...spending, reserved: [share] }, { step: 2, index: 0, own: given });
      expect(child).to.deep.equal(budget(tokens, 'fail', 0));
    });
  }
});

describe('A fork of a run with a budget', () => {
  const plain = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null };
  const fork = {
    runId: '00000000-0000-4000-8000-000000000002',
    bodyHash: 'b',
    actor: null,
    fullName: plainName,
    sha256: (text: string) => text,
  };

  it('has the budget of its request, else of its parent, and has spent nothing', () => {
    const parent = given(line, { budget: budget(AMPLE) }).when(answered('plan', 10));
    const forked = begun(buildForkRequest(parent.run, plain, fork));
    expect(forked.run.spending).to.deep.include({ budget: budget(AMPLE), spent: { tokens: 0, usd: 0n } });
    const own = begun(buildForkRequest(parent.run, { ...plain, budget: budget(7_000) }, fork));
    expect(own.run.spending?.budget).to.deep.equal(budget(7_000));
    expect(begun(buildForkRequest(given(line).run, plain, fork)).run.spending).to.equal(null);
  });

  it('repeats the step that its parent waits to repeat, and may pause at once', () => {
    const parent = given(line, { budget: budget(firstOf(line), 'pause') }).when(broke('plan', 0));
    expect(activeNodes(begun(buildForkRequest(parent.run, plain, fork)).run)).to.deep.equal(['plan']);
    const small = begun(buildForkRequest(parent.run, { ...plain, budget: budget(50, 'pause') }, fork));
    expect(small.run.phase.status).to.equal('paused');
    const resumed = small.whenDecided({ action: 'approve', modifiedState: null, budget: { tokens: AMPLE } });
    expect(activeNodes(resumed.run)).to.deep.equal(['plan']);
  });
});

describe('The estimate of a prompt', () => {
  it('is a third of the characters, and one for each of a script without spaces', () => {
    expect(mostTokens('x'.repeat(30))).to.equal(10);
    expect(mostTokens('评'.repeat(30))).to.equal(30);
    // Marks, full-width letters, Bopomofo, Yi, Javanese and New Tai Lue.
    expect(mostTokens('ー。、！Ａㄅꀀꦏᦀ'.repeat(30))).to.equal(270);
    expect(mostTokens('ab 评论 ไทย')).to.equal(2 + 5);
  });

  it('is at least one for each character of every script without spaces, and of one that Unicode does not know', () => {
    const tangut = '\u{17000}\u{18800}';
    const ancient = '\u{13000}\u{12000}\u{14400}\u{10000}\u{10600}\u{10800}';
    const others = '\u{1b170}\u{18b00}\u{16a0}\u{1a20}\u{a980}\u{1b05}\u{a4d0}\u{a840}\u{1c00}\u{11100}\u{e000}';
    for (const character of (tangut + ancient + others).match(/./gsu) ?? []) {
      expect(mostTokens(character.repeat(30)), character).to.be.at.least(30);
    }
  });

  it('is a third of the characters in scripts with spaces', () => {
    for (const text of ['слово', 'λόγος', 'שלום', 'कलम।', 'சொல்', '“a–b”…€', '{"a": 1}\n\n']) {
      expect(mostTokens(text.repeat(30)), text).to.equal(text.length * 10);
    }
  });
});

describe('A model without a price', () => {
  const names = {
    fullName: (model = 'model-1') => model,
    priceOf: (model: string) =>
      model.startsWith('unpriced') ? null : { input: 1, output: 1, cacheRead: null, cacheWrite: null },
  };

  it('is found among the models and fallbacks of the nodes that a run can reach', () => {
    const node = (id: string, fields: Partial<GraphNode>): Graph => {
      const graph = graphOf('a -> b; c');
      return { ...graph, nodes: graph.nodes.map((each) => (each.id === id ? { ...each, ...fields } : each)) };
    };
    expect(unpricedModel(node('b', { model: 'unpriced-1' }), names)).to.equal('unpriced-1');
    expect(unpricedModel(node('a', { fallbacks: ['x', 'unpriced-2'] }), names)).to.equal('unpriced-2');
    expect(unpricedModel(node('c', { model: 'unpriced-3' }), names)).to.equal(null);
  });
});
