import { expect } from 'chai';
import { OverrideRefused } from '../../../src/run/pauses/override.js';
import type { StateOverride } from '../../../src/generated/schemas.js';
import type { Story } from '../../support/given.js';
import { attemptOf, given, graphOf, scored, activeNodes, wrote } from '../../support/given.js';
import { pauseOf } from '../../../src/run/state.js';
import { flatState } from '../../support/whole-run.js';

const council = graphOf(`
  write -> judge?
  judge? -rework-> write
  judge? -approve-> polish
`);
const fork = graphOf(`
  plan -> left, right
  left, right -> meet
`);

const approve = { action: 'approve', modifiedState: null } as const;
const reject = { action: 'reject', modifiedState: null } as const;
const modify = (modifiedState: StateOverride | null) => ({ action: 'modify', modifiedState }) as const;

const paused = (graph = council): Story => given(graph, { godMode: true });
/** The council, paused after its critic. */
const judged = (score: number): Story =>
  paused().whenDecided(approve).when(wrote('write', 'Draft')).whenDecided(approve).when(scored('judge', score));

describe('A decision on a pause', () => {
  it('to approve runs the shown nodes and claims the run in the same append', () => {
    const story = paused()
      .whenDecided(approve)
      .then('GateDecided 1 approve', 'RunClaimed resumed 2 by one', 'RunResumed 1', 'NodeStarted write 1.1');
    expect(flatState(story.run)).to.include({ status: 'running', owner: 'one', epoch: 2, resumedBy: 'approve' });
  });

  it('to reject fails the run and claims nothing', () => {
    const story = paused()
      .whenDecided(reject)
      .then('GateDecided 1 reject', 'RunFailed rejected: Rejected by the user in God Mode');
    expect(flatState(story.run)).to.include({ status: 'failed', owner: null, pause: null });
  });

  it('records the pause and the shown draft', () => {
    const story = judged(5);
    const [decided] = story.whenDecided(approve).facts;
    expect(decided?.data).to.deep.equal({
      gate: 3,
      action: 'approve',
      modifiedState: null,
      nextNodes: ['write'],
      route: null,
      answers: pauseOf(story.run)?.seq,
      shownDraftHash: 'sha256 of 5 characters',
      actor: null,
      comment: null,
      keyHash: null,
      bodyHash: 'b',
    });
    expect(paused().whenDecided(approve).facts[0]?.data).to.include({ shownDraftHash: null, answers: 3 });
  });

  it('records an override with approve or reject, but does not apply it', () => {
    for (const action of ['approve', 'reject'] as const) {
      const sent = { critic_score: 9, colour: ['blue'], constructor: { prototype: 1 } };
      const story = judged(5).whenDecided({ action, modifiedState: sent });
      expect(story.facts[0]?.data).to.deep.include({ modifiedState: sent, route: null });
      expect(story.run.progress.shown.score).to.equal(5);
    }
  });
});

describe('The route after an override', () => {
  for (const [what, score, override, next] of [
    ['a passing score', 5, { critic_score: 8 }, 'polish'],
    ['a failing score', 9, { critic_score: 7.9 }, 'write'],
    ['a route', 9, { route_decision: 'rework' }, 'write'],
    ['a route against the score', 5, { critic_score: 1, route_decision: 'approve' }, 'polish'],
    ['the same score', 5, { critic_score: 5 }, 'write'],
    ['the draft alone', 9, { current_draft: 'Mine' }, 'polish'],
  ] as const) {
    it(`of ${what} after ${score} goes to ${next}`, () => {
      const story = judged(score).whenDecided(modify(override));
      expect(activeNodes(story.run)).to.deep.equal([next]);
      const { nextNodes, route } = decided(story);
      expect(nextNodes).to.deep.equal([next]);
      if (what === 'the same score' || what === 'the draft alone') expect(route).to.equal(null);
      else expect(route?.next).to.deep.equal([next]);
    });
  }

  it('of a score before the first node does not change', () => {
    const story = paused().whenDecided(modify({ critic_score: 9 }));
    expect(decided(story)).to.deep.include({ nextNodes: ['write'], route: null });
  });

  it('of a score after a frontier of several nodes does not change', () => {
    const joining = paused(fork).whenDecided(approve).when(wrote('plan')).whenDecided(approve);
    const story = joining.whenAll(wrote('left'), wrote('right')).whenDecided(modify({ critic_score: 1 }));
    expect(decided(story)).to.deep.include({ nextNodes: ['meet'], route: null });
    expect(attemptOf(story.run, 'meet').branch.score).to.equal(1);
  });

  for (const override of [
    { route_decision: null },
    { critic_score: null },
    { critic_score: 9, route_decision: null },
  ]) {
    it(`of ${JSON.stringify(override)}, under which no edge holds, is refused`, () => {
      const paused = judged(5);
      expect(() => paused.whenDecided(modify(override))).to.throw(
        OverrideRefused,
        /No outgoing edge of node "judge" holds: route null/,
      );
    });
  }
});

function decided(story: Story) {
  const fact = story.facts[0];
  if (fact?.type !== 'GateDecided') throw new Error('A decision was asked for');
  return fact.data;
}
