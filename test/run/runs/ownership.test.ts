import { expect } from 'chai';
import type { Story, When } from '../../support/given.js';
import { attemptOf, broke, completed, failed, given, graphOf, activeNodes, wrote } from '../../support/given.js';
import { completedAtOf, failureOf } from '../../../src/run/state.js';
import { flatState } from '../../support/whole-run.js';

const chain = graphOf('plan -> write; write -> polish');
const fork = graphOf('plan -> left, right; left, right -> meet');

const cancel = { type: 'CancelRun', actor: null } as const;
const release = { type: 'ReleaseRun' } as const;
const fault = { type: 'FailRun', error: 'Out of paper' } as const;
const claim = (reason: 'started' | 'recovered' | 'handover') => ({ type: 'ClaimRun', reason }) as const;

describe('A takeover', () => {
  for (const reason of ['recovered', 'handover'] as const) {
    it(`claims with the next epoch and calls the outstanding nodes once more (${reason})`, () => {
      given(chain)
        .when(wrote('plan'))
        .when(claim(reason), 'two')
        .then(`RunClaimed ${reason} 2 by two`, 'NodeStarted write 2.2');
    });
  }

  it('calls every outstanding node of a frontier and no completed one', () => {
    given(fork)
      .whenAll(wrote('plan'), wrote('left'))
      .when(claim('recovered'), 'two')
      .then('RunClaimed recovered 2 by two', 'NodeStarted right 3.2');
    given(fork)
      .when(wrote('plan'))
      .when(claim('recovered'), 'two')
      .then('RunClaimed recovered 2 by two', 'NodeStarted left 2.2', 'NodeStarted right 3.2');
  });

  it('starts a run that was claimed while pending and released before it began', () => {
    given(chain, { pending: true })
      .recorded({ type: 'RunClaimed', data: { epoch: 1, instanceId: 'one', reason: 'started' } })
      .when(claim('recovered'), 'two')
      .then('RunClaimed recovered 2 by two', 'RunStarted 2', 'NodeStarted plan 1.1');
  });

  it('takes the reports of its own attempts', () => {
    given(chain)
      .when(claim('recovered'), 'two')
      .when(completed({ step: 1, attempt: 2 }, { draft: 'in time' }))
      .then('NodeCompleted plan 1.2 -> write', 'NodeStarted write 2.1');
  });

  it('does not count the attempts lost with their owner as failures', () => {
    const story = given(chain).when(broke('plan', 100)).when(claim('recovered'), 'two');
    expect(attemptOf(story.run, 'plan')).to.include({ attempt: 3, failures: 1 });
  });

  for (const [what, at, delayMs] of [
    ['the whole time, when none has passed', '2026-01-01T00:00:00.000Z', 20_000],
    ['the rest of that time', '2026-01-01T00:00:01.600Z', 18_400],
    ['no longer, when that time is over', '2026-01-01T00:00:20.000Z', 0],
    ['no longer, long after that', '2026-01-02T00:00:00.000Z', 0],
    ['at most that time, by a clock that is behind', '2025-12-31T00:00:00.000Z', 20_000],
  ] as const) {
    it(`waits for a provider as long as it asked for: ${what}`, () => {
      const waiting = given(chain).when(broke('plan', 20_000));
      const taken = waiting.when(claim('recovered'), 'two', at);
      expect(attemptOf(taken.run, 'plan')).to.include({ attempt: 3, failures: 1, delayMs });
    });
  }

  it('waits no longer for several takeovers than for one', () => {
    const story = given(chain).when(broke('plan', 20_000)).when(claim('recovered'), 'two', '2026-01-01T00:00:05.000Z');
    const again = story.when(claim('recovered'), 'three', '2026-01-01T00:00:15.000Z');
    expect(attemptOf(again.run, 'plan')).to.include({ attempt: 4, delayMs: 5_000 });
  });

  it('of a released run is possible any number of times', () => {
    let story = given(chain);
    for (let times = 1; times <= 20; times += 1) story = story.when(claim('handover'), `owner ${times}`);
    expect(flatState(story.run)).to.include({ status: 'running', takeovers: 0, epoch: 21 });
  });

  it('from a dead owner is possible five times without a completed step; the sixth fails the run', () => {
    let story = given(chain);
    for (let times = 1; times <= 5; times += 1) story = story.when(claim('recovered'));
    expect(flatState(story.run)).to.include({ status: 'running', takeovers: 5, epoch: 6 });
    story
      .when(claim('recovered'))
      .then('RunClaimed recovered 7 by one', 'RunFailed takeover_limit: Taken over 6 times without a completed step');
  });

  it('is counted from zero after a completed step', () => {
    let story = given(chain);
    for (let times = 1; times <= 5; times += 1) story = story.when(claim('recovered'));
    story = story.when(wrote('plan'));
    expect(story.run.ownership.takeovers).to.equal(0);
    for (let times = 1; times <= 5; times += 1) story = story.when(claim('recovered'));
    expect(flatState(story.run)).to.include({ status: 'running', takeovers: 5 });
  });

  it('is not counted from zero after a failed attempt', () => {
    const story = given(chain).whenAll(claim('recovered'), broke('plan', 10), claim('recovered'));
    expect(story.run.ownership.takeovers).to.equal(2);
  });
});

describe('A release', () => {
  it('lets any instance take the run, with its outstanding steps', () => {
    const released = given(fork).when(wrote('plan')).when(release).then('RunReleased shutdown 1 by one');
    expect(flatState(released.run)).to.include({ status: 'running', owner: null });
    released
      .when(claim('handover'), 'two')
      .then('RunClaimed handover 2 by two', 'NodeStarted left 2.2', 'NodeStarted right 3.2');
  });
});

describe('A cancel', () => {
  const unfinished: readonly [state: string, story: () => Story][] = [
    ['pending', () => given(chain, { pending: true })],
    ['running', () => given(chain)],
    ['running several branches', () => given(fork).when(wrote('plan'))],
    ['released', () => given(chain).when(release)],
    ['waiting to try again', () => given(chain).when(broke('plan', 60_000))],
    ['paused', () => given(chain, { godMode: true })],
  ];
  for (const [state, story] of unfinished) {
    it(`fails a run that is ${state}`, () => {
      const cancelled = story().when(cancel).then('RunFailed cancelled: Cancelled by the user');
      expect(flatState(cancelled.run)).to.include({ status: 'failed', owner: null, pause: null });
      expect(completedAtOf(cancelled.run)).to.equal(cancelled.events.at(-1)?.at);
    });
  }
});

describe('A failed attempt', () => {
  it('is followed by the next one, with its wait, in one append', () => {
    given(chain)
      .when(broke('plan', 750))
      .then('NodeFailed plan 1.1: The model is ill', 'NodeStarted plan 1.2 after 750 ms')
      .when(broke('plan', 1_500))
      .then('NodeFailed plan 1.2: The model is ill', 'NodeStarted plan 1.3 after 1500 ms')
      .when(wrote('plan'))
      .then('NodeCompleted plan 1.3 -> write', 'NodeStarted write 2.1');
  });

  it('fails the run when it was the last', () => {
    const story = given(chain)
      .when(broke('plan', 750))
      .when(broke('plan'))
      .then('NodeFailed plan 1.2: The model is ill', 'RunFailed node_failed: Node "plan": The model is ill');
    const error = 'Node "plan": The model is ill';
    expect(failureOf(story.run)).to.deep.equal({ kind: 'node_failed', error, node: 'plan' });
  });

  it('gets the same prompt as the one before it', () => {
    const first = given(chain).when(wrote('plan'));
    const second = first.when(broke('write', 10));
    const hashOf = (story: Story): unknown => story.facts.find((fact) => fact.type === 'NodeStarted')?.data.inputHash;
    expect(hashOf(second)).to.equal(hashOf(first));
    expect(attemptOf(second.run, 'write').branch).to.deep.equal(attemptOf(first.run, 'write').branch);
  });

  it('counts neither as an execution nor as a draft nor as a score', () => {
    const story = given(graphOf('judge?')).whenAll(broke('judge', 1), broke('judge', 1));
    expect(flatState(story.run)).to.deep.include({ steps: 1, iterationCount: 0, scores: {} });
  });

  it('in one branch does not affect the others and makes its node the one started last', () => {
    const retried = given(fork).when(wrote('plan')).when(broke('left', 20));
    retried.then('NodeFailed left 2.1: The model is ill', 'NodeStarted left 2.2 after 20 ms');
    expect(activeNodes(retried.run)).to.deep.equal(['left', 'right']);
    expect(retried.run.progress.activeNode).to.equal('left');
    retried
      .when(wrote('right'))
      .then('NodeCompleted right 3.1 -> meet')
      .when(wrote('left'))
      .then('NodeCompleted left 2.2 -> meet', 'NodeStarted meet 4.1');
  });

  it('without a retry in one branch fails the run', () => {
    const failedRun = given(fork)
      .when(wrote('plan'))
      .when(broke('right'))
      .then('NodeFailed right 3.1: The model is ill', 'RunFailed node_failed: Node "right": The model is ill');
    expect(failureOf(failedRun.run)?.node).to.equal('right');
  });
});

describe('A fault of the service', () => {
  it('fails the run with the node started last', () => {
    const story = given(chain).when(fault).then('RunFailed internal: Out of paper');
    expect(failureOf(story.run)?.node).to.equal('plan');
  });
});

describe('Nothing follows from', () => {
  const done = given(graphOf('only')).when(wrote('only'));
  const cancelled = given(chain).when(cancel);
  const [pending, paused] = [given(chain, { pending: true }), given(chain, { godMode: true })];
  const branches = given(fork).when(wrote('plan'));
  /** Every report on an attempt. */
  const reports = (step: number, attempt: number): readonly When[] => [
    completed({ step, attempt }, { draft: 'late' }),
    failed({ step, attempt }, 10),
    failed({ step, attempt }, null),
  ];

  const rows: readonly (readonly [what: string, stories: readonly Story[], when: readonly When[]])[] = [
    ['a takeover of a paused or ended run', [paused, cancelled, done], [claim('recovered'), claim('handover')]],
    ['a release of a run without an owner', [pending, paused, cancelled, given(chain).when(release)], [release]],
    ['a cancellation of an ended run', [done, cancelled], [cancel]],
    ['a fault of an ended run', [done], [fault]],
    ['the reports of attempts before a takeover', [given(chain).when(claim('recovered'), 'two')], reports(1, 1)],
    ['the reports of calls in flight at a cancellation', [branches.when(cancel)], [...reports(2, 1), ...reports(3, 1)]],
    ['the reports of other branches after a failure', [branches.when(broke('right'))], reports(2, 1)],
    [
      'the reports of completed and of later steps',
      [given(chain).when(wrote('plan'))],
      [0, 1, 3, -1].flatMap((step) => reports(step, 1)),
    ],
  ];
  for (const [what, stories, when] of rows) {
    it(what, () => {
      for (const story of stories) for (const command of when) story.when(command, 'two').then();
    });
  }
});
