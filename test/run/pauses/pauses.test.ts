import { expect } from 'chai';
import type { StateOverride } from '../../../src/generated/schemas.js';
import { branchInto } from '../../../src/run/frontier/frontier.js';
import { OverrideRefused } from '../../../src/run/pauses/override.js';
import { finalDraftOf, pauseOf } from '../../../src/run/state.js';
import type { Story } from '../../support/given.js';
import { activeNodes, attemptOf, decisionFact, given, graphOf, scored, wrote } from '../../support/given.js';
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
const reject = { action: 'reject', modifiedState: null } as const;

const paused = (graph = council): Story => given(graph, { godMode: true });

/** The council, paused after its critic. */
const judged = (score = 5): Story =>
  paused()
    .whenApproved()
    .when(wrote('write', 'Draft'))
    .whenApproved()
    .when(scored('judge', score, 'Longer'));

/** The forking graph, paused before its branches or before their join. */
const branched = (): Story => paused(fork).whenApproved().when(wrote('plan', 'Plan'));
const joining = (): Story => branched().whenApproved().whenAll(wrote('left', 'L'), wrote('right', 'R'));

function decided({ facts: [fact] }: Story) {
  if (fact?.type !== 'GateDecided') throw new Error('A decision was asked for');
  return fact.data;
}

describe('A run in God Mode', () => {
  it('pauses before its first node in its first append', () => {
    const story = paused().then(
      'RunRequested',
      'RunClaimed started 1 by one',
      'RunStarted 1',
      'RunPaused 1 before write',
      'RunReleased paused 1 by one',
    );
    const state = { status: 'paused', activeNode: 'write', owner: null, iterationCount: 0, steps: 0 };
    expect(flatState(story.run)).to.include(state);
    expect(pauseOf(story.run)).to.deep.equal({
      number: 1,
      nextNodes: ['write'],
      seq: 3,
      reason: null,
      pausedAt: '2026-01-01T00:00:00.000Z',
      decision: null,
      votes: [],
      votesCast: 0,
      escalatedTo: null,
    });
  });

  it('pauses before every node, each result with its pause in one append', () => {
    paused()
      .whenApproved()
      .then('GateDecided 1 approve', 'RunClaimed resumed 2 by one', 'RunResumed 1', 'NodeStarted write 1.1')
      .when(wrote('write', 'Draft'))
      .then('NodeCompleted write 1.1 -> judge', 'RunPaused 2 before judge', 'RunReleased paused 2 by one')
      .whenApproved()
      .when(scored('judge', 9))
      .then('NodeCompleted judge 2.1 -> polish', 'RunPaused 3 before polish', 'RunReleased paused 3 by one')
      .whenApproved()
      .when(wrote('polish', 'Final'))
      .then('NodeCompleted polish 3.1 ->', 'RunCompleted: Final (9, 2)');
  });

  it('pauses once before a frontier and lists its nodes in edge order', () => {
    const story = branched().then(
      'NodeCompleted plan 1.1 -> left right',
      'RunPaused 2 before left right',
      'RunReleased paused 2 by one',
    );
    expect(flatState(story.run)).to.include({ status: 'paused', activeNode: 'left' });
    expect(activeNodes(story.whenApproved().run)).to.deep.equal(['left', 'right']);
  });

  it('shows the branch that the waiting node will work on', () => {
    const { run } = joining();
    expect(run.progress.shown.draft).to.equal('## Left\nL\n\n## Right\nR');
    expect(run.progress.shown).to.deep.equal(branchInto(run, 'meet', run.progress.steps + 1));
    expect(run.progress.shown).to.deep.equal(attemptOf(joining().whenApproved().run, 'meet').branch);
  });

  it('records the score that it shows, also of another branch', () => {
    const graph = graphOf('plan -> write, judge?; write, judge? -> meet');
    const begun = paused(graph).whenApproved().when(wrote('plan')).whenApproved();
    const story = begun.whenAll(scored('judge', 3), wrote('write'));
    const pause = story.facts.find((fact) => fact.type === 'RunPaused');
    expect(pause?.data).to.deep.equal({ gate: 3, nextNodes: ['meet'], criticScore: 3, iteration: 2 });
    expect(story.run.progress.shown.score).to.equal(3);
  });

  it('does not pause at a takeover while its nodes are in flight', () => {
    const story = paused().whenApproved().when({ type: 'ClaimRun', reason: 'recovered' }, 'two');
    story.then('RunClaimed recovered 3 by two', 'NodeStarted write 1.2');
  });
});

describe('A decision on a pause', () => {
  it('to approve claims the run in the same append', () => {
    const { run } = paused().whenApproved();
    const state = { status: 'running', owner: 'one', epoch: 2, resumedBy: 'approve', pause: null };
    expect(flatState(run)).to.include(state);
    expect(flatState(judged().whenModified({}).run)).to.include({ pause: null, resumedBy: 'modify' });
  });

  it('to reject fails the run and claims nothing', () => {
    const story = paused().whenDecided(reject);
    story.then('GateDecided 1 reject', 'RunFailed rejected: Rejected by the user in God Mode');
    expect(flatState(story.run)).to.include({ status: 'failed', owner: null, pause: null });
  });

  it('keeps the run paused until it resumes', () => {
    const story = judged().recorded(decisionFact(judged()));
    expect(flatState(story.run)).to.include({ status: 'paused', seq: judged().run.head.seq + 1 });
    expect(pauseOf(story.run)).to.deep.equal({ ...pauseOf(judged().run), decision: 'approve' });
  });

  it('records the pause and the shown draft', () => {
    expect(decided(judged().whenApproved())).to.deep.equal({
      gate: 3,
      action: 'approve',
      modifiedState: null,
      nextNodes: ['write'],
      route: null,
      answers: pauseOf(judged().run)?.seq,
      shownDraftHash: 'sha256 of 5 characters',
      actor: null,
      comment: null,
      keyHash: null,
      bodyHash: 'b',
    });
    expect(decided(paused().whenApproved())).to.include({ shownDraftHash: null, answers: 3 });
  });

  for (const action of ['approve', 'reject'] as const) {
    it(`to ${action} records the override sent with it, but does not apply it`, () => {
      const sent = { input_topic: 'Other', critic_score: 9, colour: ['blue'], constructor: { prototype: 1 } };
      const story = judged();
      const fact = decisionFact(story, { action, modifiedState: sent });
      expect(fact.data).to.deep.include({ modifiedState: sent, route: null });
      const { run } = story.recorded(fact);
      const { head, phase } = run;
      expect(run).to.deep.equal({ ...story.run, head, phase });
    });
  }
});

describe('An override', () => {
  const feedbackOf = ({ run }: Story): readonly string[] => run.progress.shown.feedback.map(({ text }) => text);

  const rows: readonly (readonly [override: StateOverride, state: object])[] = [
    [{ input_topic: 'Rivers' }, { inputTopic: 'Rivers', requestedTopic: 'The sea' }],
    [{ current_draft: 'Mine' }, { draft: 'Mine' }],
    [{ current_draft: '' }, { draft: '' }],
    [{ current_draft: null }, { draft: null }],
    [{ critic_score: 8 }, { score: 8, verdict: 'approve' }],
    // It does not count as a score of the critic.
    [{ critic_score: 0 }, { score: 0, verdict: 'rework', scores: { judge: 1 } }],
    [{ iteration_count: 40 }, { iterationCount: 40 }],
    [{ iteration_count: 0 }, { iterationCount: 0 }],
  ];
  for (const [override, state] of rows) {
    it(`of ${JSON.stringify(override)} leads to ${JSON.stringify(state)}`, () => {
      const { run } = judged().whenModified(override);
      const [node = ''] = activeNodes(run);
      const { iterationCount } = run.progress;
      expect({ ...flatState(run), ...attemptOf(run, node).branch, iterationCount }).to.deep.include(state);
    });
  }

  it('of the score to null removes the verdict', () => {
    const behind = paused(graphOf('judge? -> write')).whenApproved().when(scored('judge', 5));
    const { run } = behind.whenModified({ critic_score: null });
    expect(run.progress.shown).to.include({ score: null, verdict: null });
  });

  it('of the iterations continues the count from there', () => {
    const { run } = judged().whenModified({ iteration_count: 40 }).when(wrote('write'));
    expect(run.progress.iterationCount).to.equal(41);
  });

  it('of the feedback replaces the list', () => {
    for (const feedback_history of [['One', 'Two'], []])
      expect(feedbackOf(judged().whenModified({ feedback_history }))).to.deep.equal(feedback_history);
  });

  it('counts as shared by branches that join', () => {
    const story = branched().whenModified({ current_draft: 'Same', feedback_history: ['Shorter'] });
    const joined = story.whenAll(wrote('left', 'L'), wrote('right', 'R'));
    expect(joined.run.progress.shown.draft).to.equal('## Left\nL\n\n## Right\nR');
    expect(feedbackOf(joined)).to.deep.equal(['Shorter']);
  });
});

describe('The route after an override', () => {
  for (const [score, override, next, isRoutedAgain] of [
    [5, { critic_score: 8 }, 'polish', true],
    [9, { critic_score: 7.9 }, 'write', true],
    [9, { route_decision: 'rework' }, 'write', true],
    [5, { critic_score: 1, route_decision: 'approve' }, 'polish', true],
    [5, { critic_score: 5 }, 'write', false],
    [9, { current_draft: 'Mine' }, 'polish', false],
  ] as const) {
    it(`leads to ${next} after a score of ${score} and ${JSON.stringify(override)}`, () => {
      const story = judged(score).whenModified(override);
      expect(activeNodes(story.run)).to.deep.equal([next]);
      const { nextNodes, route } = decided(story);
      expect([nextNodes, route?.next ?? null]).to.deep.equal([[next], isRoutedAgain ? [next] : null]);
    });
  }

  for (const override of [
    { route_decision: null },
    { critic_score: null },
    { critic_score: 9, route_decision: null },
  ]) {
    it(`is refused for ${JSON.stringify(override)}, under which no edge holds`, () => {
      expect(() => judged().whenModified(override)).to.throw(
        OverrideRefused,
        /No outgoing edge of node "judge" holds: route null/,
      );
    });
  }

  it('does not change by a score before the first node, or after a frontier of several nodes', () => {
    const first = paused().whenModified({ critic_score: 9 });
    expect(decided(first)).to.deep.include({ nextNodes: ['write'], route: null });
    const story = joining().whenModified({ critic_score: 1 });
    expect(decided(story)).to.deep.include({ nextNodes: ['meet'], route: null });
    expect(attemptOf(story.run, 'meet').branch.score).to.equal(1);
  });

  it('is shown with its node and state after the decision', () => {
    const fact = decisionFact(judged(9), { action: 'modify', modifiedState: { route_decision: 'rework' } });
    const { run } = judged(9).recorded(fact);
    expect(pauseOf(run)?.nextNodes).to.deep.equal(['write']);
    expect(run.progress.arrivals.map(({ node }) => node)).to.deep.equal(['write']);
    expect(run.progress.shown).to.include({ draft: 'Draft', score: 9, verdict: 'rework' });
  });

  it('may fork where the old one did not', () => {
    const graph = graphOf('judge? -approve-> last; judge? -> left, right; left, right -> meet');
    const story = paused(graph).whenApproved().when(scored('judge', 9));
    expect(pauseOf(story.run)?.nextNodes).to.deep.equal(['last']);
    const forked = story.whenModified({ critic_score: 1 });
    expect(activeNodes(forked.run)).to.deep.equal(['left', 'right']);
    const joined = forked.whenAll(wrote('left', 'L'), wrote('right', 'R')).whenApproved();
    expect(attemptOf(joined.run, 'meet').branch.draft).to.equal('## Left\nL\n\n## Right\nR');
  });

  it('does not change branches that wait or have ended', () => {
    const graph = graphOf('plan -> aside, judge?; judge? -> second?; second? -approve-> good; second? -rework-> bad');
    const frontier = paused(graph).whenApproved().when(wrote('plan')).whenApproved();
    const judging = frontier.whenAll(wrote('aside', 'A'), scored('judge', 5)).whenApproved();
    const story = judging.when(scored('second', 5));
    expect(pauseOf(story.run)?.nextNodes).to.deep.equal(['bad']);
    const { run } = story.whenModified({ critic_score: 9 }).when(wrote('good', 'G'));
    expect(run.progress.ended.map(({ node }) => node)).to.include('aside');
    expect(finalDraftOf(run)).to.equal('## Aside\nA\n\n## Good\nG');
  });
});
