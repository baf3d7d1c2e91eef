import { expect } from 'chai';
import type { StepFailure } from '../../src/council/executors.js';
import type { StepOutcome } from '../../src/council/step.js';
import type { RunState } from '../../src/run/state.js';
import { reportOf } from '../../src/run/runs/attempts.js';
import type { Story, When } from '../support/given.js';
import { attemptOf, given, graphOf, scored, wrote } from '../support/given.js';
import { flatState } from '../support/whole-run.js';

const START = '2026-01-01T00:00:00.000Z';
const BUDGET_MS = 120_000;
const chain = graphOf('plan -> write; write -> judge?');
const claim = { type: 'ClaimRun', reason: 'recovered' } as const;

/** The command by which the actor reports a failed call, by the rules for retries. */
function reported(node: string, outcome: StepOutcome, maxAttempts = 4): When {
  return (run: RunState) =>
    reportOf(attemptOf(run, node), outcome, { maxAttempts, random: 0.5, prices: { priceOf: () => null } });
}

/** The server of a node's model is unreachable. */
function wentOut(node: string, { retryAfterMs = 0, outageMs = BUDGET_MS, maxAttempts = 4 } = {}): When {
  const failure: StepFailure = { kind: 'unavailable', message: 'Loading', retryable: true, outageMs, retryAfterMs };
  return reported(node, { kind: 'failed', failure }, maxAttempts);
}

/** The server of a node's model answers that it is too busy. */
function refused(node: string): When {
  const failure: StepFailure = { kind: 'rate_limited', message: 'Slow down', retryable: true };
  return reported(node, { kind: 'failed', failure });
}

/** A story that continues after a time, in seconds. */
function after(seconds: number): string {
  return new Date(Date.parse(START) + seconds * 1000).toISOString();
}

describe('An outage of a model', () => {
  it('is one failed attempt; the next one waits for its end', () => {
    const story = given(chain).when(wentOut('plan')).then('NodeFailed plan 1.1: Loading', 'NodeStarted plan 1.2');
    expect(story.facts[0]?.data).to.include({ retryable: true, outageMs: BUDGET_MS });
    expect(attemptOf(story.run, 'plan').outage).to.deep.equal({ since: START, budgetMs: BUDGET_MS });
    story.when(wrote('plan')).then('NodeCompleted plan 1.2 -> write', 'NodeStarted write 2.1');
  });

  it('does not count towards the maximum of attempts', () => {
    const story = given(chain).when(wentOut('plan', { maxAttempts: 1 }));
    expect(attemptOf(story.run, 'plan')).to.include({ attempt: 2, failures: 0 });
  });

  it('delays the next attempt as the server asks, at most a minute and its budget', () => {
    const delayOf = (story: Story): number => attemptOf(story.run, 'plan').delayMs;
    expect(delayOf(given(chain).when(wentOut('plan', { retryAfterMs: 30_000 })))).to.equal(30_000);
    expect(delayOf(given(chain).when(wentOut('plan', { retryAfterMs: 90_000 })))).to.equal(60_000);
    expect(delayOf(given(chain).when(wentOut('plan', { retryAfterMs: 90_000, outageMs: 2_000 })))).to.equal(2_000);
  });

  it('continues over a restart with the rest of its budget', () => {
    const story = given(chain).when(wentOut('plan')).when(claim, 'two', after(50)).when(claim, 'three', after(70));
    expect(attemptOf(story.run, 'plan')).to.deep.include({
      attempt: 4,
      failures: 0,
      outage: { since: START, budgetMs: BUDGET_MS },
    });
  });

  it('does not count takeovers until its budget has ended', () => {
    let story = given(chain).when(wentOut('plan'));
    for (let restarts = 1; restarts <= 10; restarts += 1) story = story.when(claim, 'two', after(restarts));
    expect(flatState(story.run)).to.include({ status: 'running', takeovers: 0 });
    for (let restarts = 1; restarts <= 5; restarts += 1) story = story.when(claim, 'two', after(120 + restarts));
    expect(flatState(story.run)).to.include({ status: 'running', takeovers: 5 });
    story
      .when(claim, 'two', after(126))
      .then('RunClaimed recovered 17 by two', 'RunFailed takeover_limit: Taken over 6 times without a completed step');
  });

  it('ends with any other failure, which counts; a later outage has its own budget', () => {
    const story = given(chain).when(wentOut('plan')).when(refused('plan'), 'one', after(100));
    expect(attemptOf(story.run, 'plan')).to.include({ attempt: 3, failures: 1, outage: null });
    const again = story.when(wentOut('plan'), 'one', after(110));
    expect(attemptOf(again.run, 'plan')).to.deep.include({
      failures: 1,
      outage: { since: after(110), budgetMs: BUDGET_MS },
    });
  });

  it('that directly follows another counts as a failed attempt', () => {
    let story = given(chain).when(wentOut('plan'));
    for (let outages = 2; outages <= 4; outages += 1) story = story.when(wentOut('plan'));
    expect(attemptOf(story.run, 'plan')).to.include({ attempt: 5, failures: 3 });
    story.when(wentOut('plan')).then('NodeFailed plan 1.5: Loading', 'RunFailed node_failed: Node "plan": Loading');
  });

  it('can be cancelled, and keeps pauses', () => {
    given(chain)
      .when(wentOut('plan'))
      .when({ type: 'CancelRun', actor: null })
      .then('RunFailed cancelled: Cancelled by the user');
    const paused = given(graphOf('judge? -> write'), { godMode: true })
      .whenApproved()
      .when(wentOut('judge'))
      .when(scored('judge', 9));
    expect(flatState(paused.run)).to.include({ status: 'paused', pauses: 2 });
  });
});
