import { expect } from 'chai';
import { OverrideRefused } from '../../../src/run/pauses/override.js';
import type { Graph, RunRequestedData, StateOverride } from '../../../src/generated/schemas.js';
import { godModeState } from '../../../src/api/serializers/runs.js';
import type { ForkChanges } from '../../../src/run/fork.js';
import { buildForkRequest } from '../../../src/run/fork.js';
import { pauseViewOf } from '../../../src/run/pauses/pause-view.js';
import type { RunProgress, RunState } from '../../../src/run/state.js';
import { finalDraftOf, isFinished, pauseOf } from '../../../src/run/state.js';
import type { Story, When } from '../../support/given.js';
import {
  attemptOf,
  begun,
  completed,
  given,
  graphOf,
  shortText,
  playOut,
  scored,
  activeNodes,
  wrote,
} from '../../support/given.js';
import { drawsOf, named, outputOf, randomGraph } from '../../support/random-history.js';
import { plainName } from '../../support/open-engine.js';
import { IS_SOAK } from '../../support/soak.js';

const HISTORIES = IS_SOAK ? 400 : 5;

/** A run paused after these commands, with all earlier pauses approved. */
function pausedAfter(graph: Graph, ...commands: readonly When[]): Story {
  return commands.reduce((story: Story, command) => goneOn(story).when(command), given(graph, { godMode: true }));
}

const goneOn = (story: Story): Story => (story.run.phase.status === 'paused' ? story.whenApproved() : story);

/** Plays the run to its end: agents write, critics score 9, and every pause is approved. */
function toTheEnd(story: Story): RunState {
  let played = story;
  while (!isFinished(played.run)) {
    played = playOut(goneOn(played), (node, { plan }) =>
      plan.node(node).role === 'critic' ? scored(node, 9) : wrote(node),
    );
  }
  return played.run;
}

/** The complete God Mode state of a run, in the form in which a client can send it back. */
function shownState(run: RunState): StateOverride {
  const session = pauseViewOf(run);
  if (session === null) throw new Error('Not in God Mode');
  const { current_state: current, branches } = godModeState(session, { mayDecide: true, needed: null });
  return { ...current, ...(branches !== undefined && { branches }) };
}

function forkAt(run: RunState, changes: Partial<ForkChanges>): RunRequestedData {
  const all = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null, ...changes };
  const sha256 = (text: string): string => String(text.length);
  return buildForkRequest(run, all, {
    runId: '00000000-0000-4000-8000-000000000002',
    bodyHash: 'b',
    actor: null,
    fullName: plainName,
    sha256,
  });
}

const draftsIn = ({
  arrivals,
  ended,
}: Pick<RunProgress, 'arrivals' | 'ended'>): readonly (readonly [string, string | null])[] =>
  [...arrivals, ...ended].map(({ node, branch }) => [node, branch.draft]);

describe('An edit of the draft', () => {
  it('does not change a branch that has ended', () => {
    const paused = pausedAfter(graphOf('s -> a, b; b -> c'), wrote('s'), wrote('a'), wrote('b'));
    expect(pauseOf(paused.run)?.nextNodes).to.deep.equal(['c']);
    const edited = paused.whenModified({ current_draft: 'X' });
    expect(attemptOf(edited.run, 'c').branch.draft).to.equal('X');
    expect(finalDraftOf(toTheEnd(edited))).to.equal('## A\nby a\n\n## C\nby c');
  });

  it('does not change a branch that waits at a join', () => {
    const graph = graphOf('s -> a, b; b -> c; a, c -> meet');
    const edited = pausedAfter(graph, wrote('s'), wrote('a'), wrote('b')).whenModified({ current_draft: 'X' });
    const joined = edited.when(wrote('c'));
    expect(joined.run.progress.shown.draft).to.equal('## A\nby a\n\n## C\nby c');
  });

  it('keeps its author at a join if only a critic works on it', () => {
    const graph = graphOf('s -> a, b; b -> judge?');
    const edited = pausedAfter(graph, wrote('s'), wrote('a'), wrote('b')).whenModified({ current_draft: 'X' });
    expect(finalDraftOf(toTheEnd(edited))).to.equal('## A\nby a\n\n## B\nX');
  });

  it("gets the critic's node as author if the draft is shared", () => {
    const graph = graphOf('s -> k?, b; k? -> k2?; k2?, b -> meet');
    const edited = pausedAfter(graph, wrote('s'), scored('k', 9), wrote('b')).whenModified({ current_draft: 'X' });
    expect(activeNodes(edited.run)).to.deep.equal(['k2']);
    expect(edited.when(scored('k2', 9)).run.progress.shown.draft).to.equal('## K2\nX\n\n## B\nby b');
  });

  it('reaches every branch about to run, which then share it', () => {
    const graph = graphOf('s -> k?, b; k?, b -> meet');
    const edited = pausedAfter(graph, wrote('s')).whenModified({ current_draft: 'Same' });
    for (const node of ['k', 'b']) expect(attemptOf(edited.run, node).branch.draft).to.equal('Same');
    expect(edited.whenAll(scored('k', 9), wrote('b')).run.progress.shown.draft).to.equal('## B\nby b');
  });

  it('returns with a branch that a human sends back', () => {
    const graph = graphOf(`
      s -> left, right
      left -> deep
      deep -> judge?
      judge? -rework-> left
      judge? -approve-> meet
      right -> meet
    `);
    const paused = pausedAfter(graph, wrote('s'), wrote('left'), wrote('right'), wrote('deep'), scored('judge', 9));
    expect(pauseOf(paused.run)?.nextNodes).to.deep.equal(['meet']);
    const sent = paused.whenModified({ current_draft: 'X', route_decision: 'rework' });
    expect(activeNodes(sent.run)).to.deep.equal(['left']);
    expect(attemptOf(sent.run, 'left').branch.draft).to.equal('X');
    expect(sent.run.progress.arrivals.map(({ node, branch }) => [node, branch.draft])).to.deep.equal([
      ['meet', 'by right'],
    ]);
  });

  it("to null removes the branch's draft", () => {
    const paused = pausedAfter(graphOf('s -> a, b; b -> judge?'), wrote('s'), wrote('a'), wrote('b'));
    expect(finalDraftOf(toTheEnd(paused.whenModified({ current_draft: null })))).to.equal('## A\nby a');
  });

  it('at a fork reaches only nodes in flight or next', () => {
    const graph = graphOf('s -> a, b; b -> c');
    const { run } = given(graph).whenAll(wrote('s'), wrote('a'));
    const underWayThere = begun(forkAt(run, { override: { current_draft: 'X' } }));
    expect(attemptOf(underWayThere.run, 'b').branch.draft).to.equal('X');
    expect(finalDraftOf(toTheEnd(underWayThere))).to.equal('## A\nby a\n\n## C\nby c');
    const paused = pausedAfter(graphOf('s -> a, b; b -> judge?'), wrote('s'), wrote('a'), wrote('b')).run;
    const fork = begun(forkAt(paused, { override: { current_draft: 'X' } }));
    expect(fork.run.progress.shown.draft).to.equal('X');
    expect(finalDraftOf(toTheEnd(fork))).to.equal('## A\nby a\n\n## B\nX');
  });

  it("at a fork of a fork differs from the first fork's", () => {
    const graph = graphOf('s -> a, b; a -> k?; b -> c; c -> l?; k?, l? -> meet');
    const { run } = given(graph).whenAll(wrote('s'), wrote('a'), wrote('b'));
    const first = begun(forkAt(run, { override: { branches: [{ node: 'k', current_draft: 'K' }] } }));
    const second = begun(forkAt(first.whenAll(scored('k', 9), wrote('c')).run, { override: { current_draft: 'L' } }));
    const joined = second.when(scored('l', 9));
    expect(attemptOf(joined.run, 'meet').branch.draft).to.equal('## A\nK\n\n## C\nL');
  });
});

describe('An override of single branches', () => {
  const graph = graphOf('s -> a, b, c; a, b, c -> meet; c -> aside');
  const before = (): Story => pausedAfter(graph, wrote('s', 'Plan'));
  const held = ({ run }: Story): readonly (string | null)[] => run.progress.frontier.map(({ branch }) => branch.draft);

  it('reaches only them; the draft for all reaches the others', () => {
    const branches = [{ node: 'b', current_draft: 'For b' }];
    expect(held(before().whenModified({ branches }))).to.deep.equal(['Plan', 'For b', 'Plan']);
    expect(held(before().whenModified({ branches, current_draft: 'All' }))).to.deep.equal(['All', 'For b', 'All']);
    const none = [{ node: 'b', current_draft: null }];
    expect(held(before().whenModified({ branches: none }))).to.deep.equal(['Plan', null, 'Plan']);
  });

  it('keeps the shown draft of a named branch despite a draft for all', () => {
    const kept = [{ node: 'b', current_draft: 'Plan' }];
    expect(held(before().whenModified({ branches: kept, current_draft: 'All' }))).to.deep.equal(['All', 'Plan', 'All']);
    const mixed = [...kept, { node: 'c', current_draft: 'For c' }];
    const modified = before().whenModified({ branches: mixed, current_draft: 'All' });
    expect(held(modified)).to.deep.equal(['All', 'Plan', 'For c']);
    const { frontier } = modified.run.progress;
    expect(frontier.map(({ branch }) => branch.draftFrom === '1')).to.deep.equal([false, true, false]);
  });

  it('is ignored beside a draft for all if it names every shown branch unchanged', () => {
    const branches = ['a', 'b', 'c'].map((node) => ({ node, current_draft: 'Plan' }));
    expect(held(before().whenModified({ branches, current_draft: 'All' }))).to.deep.equal(['All', 'All', 'All']);
  });

  it('is recorded as sent, next to its effective part', () => {
    const sent = { current_draft: 'Mine', iteration_count: 1, feedback_history: [] };
    const [decided] = before().whenModified(sent).facts;
    expect(decided?.data).to.deep.include({ modifiedState: { current_draft: 'Mine' }, sentState: sent });
    const [without] = before().whenDecided({ action: 'modify', modifiedState: null }).facts;
    expect(without?.data).not.to.have.property('sentState');
  });

  it('too large to be recorded twice is recorded by its effective part and its other fields', () => {
    const text = 'x'.repeat(90_000);
    const [decided] = before().whenModified({ current_draft: text, input_topic: text, iteration_count: 1 }).facts;
    expect(decided?.data).to.deep.include({
      sentState: { current_draft: text, input_topic: text, iteration_count: 1 },
    });
    const large = { current_draft: text, input_topic: text.repeat(2), iteration_count: 1 };
    const [compact] = before().whenModified(large).facts;
    expect(compact?.data).to.deep.include({
      modifiedState: { current_draft: large.current_draft, input_topic: large.input_topic },
      sentState: { iteration_count: 1 },
    });
  });

  it('is refused for an unknown node, a duplicate or one that does not run next', () => {
    const uneven = graphOf('s -> a, b; b -> c; a, c -> meet');
    const paused = pausedAfter(uneven, wrote('s'), wrote('a'), wrote('b'));
    const refused = (...branches: NonNullable<StateOverride['branches']>): unknown => {
      try {
        paused.whenModified({ branches });
      } catch (error) {
        return error instanceof OverrideRefused ? [error.data.place[1], error.data.kind] : error;
      }
      return null;
    };
    const draft = { current_draft: 'X' };
    expect(refused({ node: 'c', ...draft }, { node: 'gone', ...draft })).to.deep.equal([1, 'unknown_node']);
    expect(refused({ node: 'c', ...draft }, { node: 'c', ...draft })).to.deep.equal([1, 'duplicate']);
    for (const node of ['meet', 'a', 's']) expect(refused({ node, ...draft })).to.deep.equal([0, 'not_next']);
    expect(refused({ node: 'meet', current_draft: 'by a' }, { node: 'c', ...draft })).to.equal(null);
  });
});

describe('Other fields of an override', () => {
  it('apply to every live branch, not to ended ones', () => {
    const graph = graphOf('s? -> a?, b; b -> c?');
    const paused = pausedAfter(graph, scored('s', 4, 'S'), scored('a', 3, 'A'), wrote('b'));
    const { run } = paused.whenModified({ feedback_history: ['Mine'], critic_score: 9 }).when(scored('c', 8, 'C'));
    expect(finalDraftOf(run)).to.equal('## B\nby b');
    expect(run.progress.shown.score).to.equal(3);
    expect(run.progress.shown.feedback.map(({ text }) => text)).to.deep.equal(['S', 'A', 'Mine', 'C']);
  });
});

describe('Sending the shown state back', () => {
  it('has the same effect as an approval at every pause of random runs', () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      named(seed, () => {
        const played = (decide: (story: Story) => Story): Story => {
          let story = given(randomGraph(drawsOf(seed)), { godMode: true });
          while (!isFinished(story.run)) {
            const [node] = activeNodes(story.run);
            const at = node === undefined ? null : attemptOf(story.run, node);
            story = at === null ? decide(story) : story.when(completed(at, outputOf(story.run, at.node, at.step)));
          }
          return story;
        };
        const approved = played((story) => story.whenApproved());
        const sentBack = played((story) => story.whenModified(shownState(story.run)));
        const seen = ({ events }: Story): readonly string[] =>
          events.filter(({ type }) => type !== 'GateDecided').map(shortText);
        expect(seen(sentBack)).to.deep.equal(seen(approved));
        expect(sentBack.run.progress.shown).to.deep.equal(approved.run.progress.shown);
      });
    }
  });

  it('with another draft changes only the branches about to run', () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      named(seed, () => {
        const draws = drawsOf(seed);
        let story = given(randomGraph(draws), { godMode: true });
        while (!isFinished(story.run)) {
          const [node] = activeNodes(story.run);
          if (node === undefined) {
            const next = pauseOf(story.run)?.nextNodes ?? [];
            const { arrivals, ended } = story.run.progress;
            const before = draftsIn({ ended, arrivals: arrivals.filter((each) => !next.includes(each.node)) });
            const edited = story.whenModified({ ...shownState(story.run), current_draft: `Edit ${draws.below(99)}` });
            for (const at of next) expect(attemptOf(edited.run, at).branch.draft).to.match(/^Edit/);
            expect(draftsIn(edited.run.progress)).to.deep.equal(before);
            story = edited;
          } else {
            const at = attemptOf(story.run, node);
            story = story.when(completed(at, outputOf(story.run, node, at.step)));
          }
        }
      });
    }
  });
});
