import { expect } from 'chai';
import { OverrideRefused } from '../../../src/run/pauses/override.js';
import type { StateOverride } from '../../../src/generated/schemas.js';
import { branchInto } from '../../../src/run/frontier/frontier.js';
import type { RunState } from '../../../src/run/state.js';
import type { Decision, Story } from '../../support/given.js';
import { attemptOf, given, graphOf, pauseDecided, resumed, scored, activeNodes, wrote } from '../../support/given.js';
import { finalDraftOf, pauseOf } from '../../../src/run/state.js';
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

const godMode = { godMode: true } as const;

/** The council paused after the critic's score. */
function judged(score = 5): Story {
  return resumed(resumed(given(council, godMode)).when(wrote('write', 'Draft'))).when(scored('judge', score, 'Longer'));
}

/** The forking graph, paused before the join or before its branches. */
const branched = (): Story => resumed(given(fork, godMode)).when(wrote('plan', 'Plan'));
const joining = (): Story => resumed(branched()).whenAll(wrote('left', 'L'), wrote('right', 'R'));

const modify = (modifiedState: StateOverride, reroute?: readonly string[]): Decision => ({
  action: 'modify',
  modifiedState,
  ...(reroute === undefined ? {} : { reroute }),
});

describe('A run in God Mode', () => {
  it('pauses before its first node in its first append', () => {
    const story = given(council, godMode).then(
      'RunRequested',
      'RunClaimed started 1 by one',
      'RunStarted 1',
      'RunPaused 1 before write',
      'RunReleased paused 1 by one',
    );
    expect(flatState(story.run)).to.include({
      status: 'paused',
      activeNode: 'write',
      owner: null,
      iterationCount: 0,
      steps: 0,
    });
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
    const first = resumed(given(council, godMode));
    expect(flatState(first.run)).to.include({
      status: 'running',
      activeNode: 'write',
      pause: null,
      resumedBy: 'approve',
      epoch: 2,
    });
    const second = first
      .when(wrote('write', 'Draft'))
      .then('NodeCompleted write 1.1 -> judge', 'RunPaused 2 before judge', 'RunReleased paused 2 by one');
    const third = resumed(second)
      .when(scored('judge', 9))
      .then('NodeCompleted judge 2.1 -> polish', 'RunPaused 3 before polish', 'RunReleased paused 3 by one');
    resumed(third).when(wrote('polish', 'Final')).then('NodeCompleted polish 3.1 ->', 'RunCompleted: Final (9, 2)');
  });

  it('pauses once before a frontier and lists its nodes in edge order', () => {
    const story = branched().then(
      'NodeCompleted plan 1.1 -> left right',
      'RunPaused 2 before left right',
      'RunReleased paused 2 by one',
    );
    expect(flatState(story.run)).to.include({ status: 'paused', activeNode: 'left' });
    expect(activeNodes(resumed(story).run)).to.deep.equal(['left', 'right']);
  });

  it('shows the branch that the waiting node will work on', () => {
    const { run } = joining();
    expect(run.progress.shown.draft).to.equal('## Left\nL\n\n## Right\nR');
    expect(run.progress.shown).to.deep.equal(branchInto(run, 'meet', run.progress.steps + 1));
    expect(run.progress.shown).to.deep.equal(attemptOf(resumed(joining()).run, 'meet').branch);
  });

  it('records the score that it shows, also of another branch', () => {
    const graph = graphOf(`
      plan -> write, judge?
      write, judge? -> meet
    `);
    const story = resumed(resumed(given(graph, godMode)).when(wrote('plan'))).whenAll(
      scored('judge', 3),
      wrote('write'),
    );
    const paused = story.facts.find((fact) => fact.type === 'RunPaused');
    expect(paused?.data).to.deep.equal({ gate: 3, nextNodes: ['meet'], criticScore: 3, iteration: 2 });
    expect(story.run.progress.shown.score).to.equal(3);
  });

  it('does not pause at a takeover while its nodes are in flight', () => {
    const story = resumed(given(council, godMode)).when({ type: 'ClaimRun', reason: 'recovered' }, 'two');
    story.then('RunClaimed recovered 3 by two', 'NodeStarted write 1.2');
  });
});

describe('A decision', () => {
  it('keeps the run paused until it resumes, and records its action', () => {
    const paused = judged();
    const decided = paused.recorded(pauseDecided(paused.run, { action: 'approve' }));
    expect(flatState(decided.run)).to.include({ status: 'paused', seq: paused.run.head.seq + 1 });
    expect(pauseOf(decided.run)).to.deep.equal({ ...pauseOf(paused.run), decision: 'approve' });
    expect(flatState(resumed(paused).run)).to.include({ status: 'running', pause: null, resumedBy: 'approve' });
    expect(flatState(resumed(paused, modify({})).run)).to.include({ pause: null, resumedBy: 'modify' });
  });

  for (const action of ['approve', 'reject'] as const) {
    it(`to ${action} does not apply the override sent with it`, () => {
      const paused = judged();
      const sent = { input_topic: 'Other', current_draft: 'X', critic_score: 1, iteration_count: 9 };
      const { run } = paused.recorded(pauseDecided(paused.run, { action, modifiedState: sent }));
      const { head, phase } = run;
      expect(run).to.deep.equal({ ...paused.run, head, phase });
    });
  }
});

describe('An override', () => {
  /** The state in which the next node works after an override. */
  const after = (override: StateOverride): RunState => judged().whenModified(override).run;

  it("of the topic changes the council's topic, not the requested one", () => {
    expect(flatState(after({ input_topic: 'Rivers' }))).to.include({ inputTopic: 'Rivers', requestedTopic: 'The sea' });
  });

  it('of the draft reaches the next node, null too', () => {
    expect(attemptOf(after({ current_draft: 'Mine' }), 'write').branch.draft).to.equal('Mine');
    expect(attemptOf(after({ current_draft: '' }), 'write').branch.draft).to.equal('');
    expect(attemptOf(after({ current_draft: null }), 'write').branch.draft).to.equal(null);
  });

  it('of the score changes the verdict, null too', () => {
    expect(after({ critic_score: 8 }).progress.shown).to.include({ score: 8, verdict: 'approve' });
    expect(after({ critic_score: 0 }).progress.shown).to.include({ score: 0, verdict: 'rework' });
    expect(() => after({ critic_score: null })).to.throw(OverrideRefused);
    const behind = given(graphOf('judge? -> write'), godMode).whenModified({}).when(scored('judge', 5));
    expect(behind.whenModified({ critic_score: null }).run.progress.shown).to.include({ score: null, verdict: null });
  });

  it('of the iterations continues the count from there', () => {
    const story = judged().whenModified({ iteration_count: 40 }).when(wrote('write'));
    expect(story.run.progress.iterationCount).to.equal(41);
    expect(after({ iteration_count: 0 }).progress.iterationCount).to.equal(0);
  });

  it('of the feedback replaces the list', () => {
    const story = judged().whenModified({ feedback_history: ['One', 'Two'] });
    expect(story.run.progress.shown.feedback.map(({ text }) => text)).to.deep.equal(['One', 'Two']);
    expect(after({ feedback_history: [] }).progress.shown.feedback).to.deep.equal([]);
  });

  it('does not count as a score of the critic', () => {
    expect(after({ critic_score: 2 }).progress.scores).to.deep.equal({ judge: 1 });
  });

  it('counts as shared by branches that join', () => {
    const story = branched().whenModified({ current_draft: 'Same', feedback_history: ['Shorter'] });
    const joined = story.whenAll(wrote('left', 'L'), wrote('right', 'R')).run.progress.shown;
    expect(joined.draft).to.equal('## Left\nL\n\n## Right\nR');
    expect(joined.feedback.map(({ text }) => text)).to.deep.equal(['Shorter']);
  });
});

describe('A new route after an override', () => {
  it('is shown with its node and state after the decision', () => {
    const paused = judged(9);
    const { run } = paused.recorded(pauseDecided(paused.run, modify({ route_decision: 'rework' }, ['write'])));
    expect(pauseOf(run)?.nextNodes).to.deep.equal(['write']);
    expect(run.progress.arrivals.map(({ node }) => node)).to.deep.equal(['write']);
    expect(run.progress.shown).to.include({ draft: 'Draft', score: 9, verdict: 'rework' });
  });

  it('may fork where the old one did not', () => {
    const graph = graphOf(`
      judge? -approve-> last
      judge? -> left, right
      left, right -> meet
    `);
    const paused = resumed(given(graph, godMode)).when(scored('judge', 9));
    expect(pauseOf(paused.run)?.nextNodes).to.deep.equal(['last']);
    const story = resumed(paused, modify({ critic_score: 1 }, ['left', 'right']));
    expect(activeNodes(story.run)).to.deep.equal(['left', 'right']);
    const joined = resumed(story.whenAll(wrote('left', 'L'), wrote('right', 'R')));
    expect(attemptOf(joined.run, 'meet').branch.draft).to.equal('## Left\nL\n\n## Right\nR');
  });

  it('does not change branches that wait or have ended', () => {
    const graph = graphOf(`
      plan -> aside, judge?
      judge? -> second?
      second? -approve-> good
      second? -rework-> bad
    `);
    const frontier = resumed(resumed(given(graph, godMode)).when(wrote('plan'))).whenAll(
      wrote('aside', 'A'),
      scored('judge', 5),
    );
    const paused = resumed(frontier).when(scored('second', 5));
    expect(pauseOf(paused.run)?.nextNodes).to.deep.equal(['bad']);
    const story = resumed(paused, modify({ critic_score: 9 }, ['good']));
    expect(story.run.progress.ended.map(({ node }) => node)).to.deep.equal(['aside']);
    expect(finalDraftOf(story.when(wrote('good', 'G')).run)).to.equal('## Aside\nA\n\n## Good\nG');
  });
});
