import { expect } from 'chai';
import { MAX_ALL_FEEDBACK_BYTES, MAX_DRAFT_BYTES, MAX_FEEDBACK_BYTES, jsonBytes } from '../../src/graph/limits.js';
import type { Story } from '../support/given.js';
import { attemptOf, given, graphOf, playOut, scored, wrote } from '../support/given.js';
import { failureOf } from '../../src/run/state.js';
import { flatState } from '../support/whole-run.js';

const ring = graphOf('a -> b; b -> a');

/** A text whose JSON form takes this many bytes. */
const textOf = (bytes: number): string => 'x'.repeat(bytes - 2);

describe('Node executions', () => {
  it('end a run of a small graph after exactly 50', () => {
    const { run, facts } = playOut(given(ring), (node) => wrote(node));
    expect(run.progress.steps).to.equal(50);
    expect(failureOf(run)).to.deep.equal({
      kind: 'execution_limit',
      error: 'Stopped after 50 node executions: 1 more would pass the limit of 50',
      node: 'a',
    });
    expect(facts.map(({ type }) => type)).to.deep.equal(['NodeCompleted', 'RunFailed']);
  });

  it('may reach the limit if the last one ends the run', () => {
    const { run } = playOut(given(graphOf('a -> b; b -> c'), { limits: { maxNodeExecutions: 3 } }), (node) =>
      wrote(node),
    );
    expect(flatState(run)).to.include({ status: 'completed', steps: 3 });
  });

  it('count every node of a frontier before it starts', () => {
    given(graphOf('a -> b, c'), { limits: { maxNodeExecutions: 2 } })
      .when(wrote('a'))
      .then(
        'NodeCompleted a 1.1 -> b c',
        'RunFailed execution_limit: Stopped after 1 node executions: 2 more would pass the limit of 2',
      );
  });

  it('reach the limit before the run pauses', () => {
    const story = given(ring, { godMode: true, limits: { maxNodeExecutions: 1 } });
    story
      .whenApproved()
      .when(wrote('a'))
      .then(
        'NodeCompleted a 1.1 -> b',
        'RunFailed execution_limit: Stopped after 1 node executions: 1 more would pass the limit of 1',
      );
  });
});

describe('A joined draft', () => {
  const graph = graphOf(`
    plan -> left, right
    left, right -> meet
  `);
  const ending = graphOf('plan -> left, right');
  /** Size of the headings and the blank line, which a join adds to the two drafts, in JSON bytes. */
  const AROUND = jsonBytes('## Left\n\n\n## Right\n');

  it('of exactly 128 KiB is accepted', () => {
    const half = 'x'.repeat((MAX_DRAFT_BYTES - AROUND) / 2);
    const story = given(graph).whenAll(wrote('plan'), wrote('left', half), wrote('right', half));
    expect(jsonBytes(attemptOf(story.run, 'meet').branch.draft ?? '')).to.be.within(
      MAX_DRAFT_BYTES - 1,
      MAX_DRAFT_BYTES,
    );
  });

  const half = 'x'.repeat((MAX_DRAFT_BYTES - AROUND) / 2 + 1);
  const tooLarge = [wrote('plan'), wrote('right', half), wrote('left', half)];

  it('beyond 128 KiB fails the run, naming the node that it is for', () => {
    const story = given(graph)
      .whenAll(...tooLarge)
      .then(
        'NodeCompleted left 2.1 -> meet',
        'RunFailed draft_too_large: The drafts joined before "Meet" are larger than 131072 bytes',
      );
    expect(failureOf(story.run)?.node).to.equal('meet');
    expect(story.run.progress.activeNode).to.equal('right');
  });

  it('beyond 128 KiB fails a run in God Mode before it pauses', () => {
    const { run } = given(graph, { godMode: true })
      .whenApproved()
      .when(wrote('plan'))
      .whenApproved()
      .whenAll(...tooLarge.slice(1));
    expect(flatState(run)).to.include({ status: 'failed', pauses: 2 });
    expect(failureOf(run)?.kind).to.equal('draft_too_large');
  });

  it('beyond 128 KiB at the end of the run fails it', () => {
    given(ending)
      .whenAll(...tooLarge)
      .then(
        'NodeCompleted left 2.1 ->',
        'RunFailed draft_too_large: The drafts joined at the end are larger than 131072 bytes',
      );
  });
});

describe('All feedback', () => {
  const loop = graphOf(`
    write -> judge?
    judge? -rework-> write
    judge? -approve-> write
  `);
  const listBytes = (story: Story): number =>
    Buffer.byteLength(JSON.stringify(story.run.progress.shown.feedback.map(({ text }) => text)));
  const judged = (times: number, bytes: number): Story => {
    let story = given(loop);
    for (let at = 1; at <= times; at += 1) {
      story = story.whenAll(wrote('write'), scored('judge', 1, `${at}`.padEnd(bytes - 2, '.')));
    }
    return story;
  };
  const numbersIn = (story: Story): readonly number[] =>
    story.run.progress.shown.feedback.map(({ text }) => Number.parseInt(text, 10));

  it('is kept up to 64 KiB', () => {
    const story = judged(7, MAX_FEEDBACK_BYTES);
    expect(numbersIn(story)).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
    const exact = story.whenAll(wrote('write'), scored('judge', 1, textOf(MAX_FEEDBACK_BYTES - 9)));
    expect(exact.run.progress.shown.feedback).to.have.length(8);
    expect(listBytes(exact)).to.equal(MAX_ALL_FEEDBACK_BYTES);
  });

  it('drops the oldest at one byte more', () => {
    const story = judged(7, MAX_FEEDBACK_BYTES).whenAll(
      wrote('write'),
      scored('judge', 1, textOf(MAX_FEEDBACK_BYTES - 8)),
    );
    expect(numbersIn(story).slice(0, 6)).to.deep.equal([2, 3, 4, 5, 6, 7]);
    expect(listBytes(story)).to.be.below(MAX_ALL_FEEDBACK_BYTES);
  });

  it('drops the oldest after a join, whichever branch it is from', () => {
    const graph = graphOf(`
      plan -> c1?, b1?
      b1? -> b2?
      b2? -> b3?
      c1? -> c2?
      c2? -> c3?
      c3?, b3? -> meet
    `);
    const size = 12_000;
    const order: readonly string[] = ['c1', 'b1', 'c2', 'b2', 'c3', 'b3'];
    const story = order.reduce(
      (before: Story, name) => before.when(scored(name, 1, name.padEnd(size, '.'))),
      given(graph).when(wrote('plan')),
    );
    const { feedback } = attemptOf(story.run, 'meet').branch;
    expect(feedback.map(({ text }) => text.slice(0, 2))).to.deep.equal(['b1', 'b2', 'c2', 'b3', 'c3']);
  });

  it('of a human has the same limit', () => {
    const feedback_history = Array.from({ length: 20 }, (_, at) => `${at}`.padEnd(10_000, '.'));
    const paused = given(loop, { godMode: true });
    const story = paused.whenModified({ feedback_history });
    expect(numbersIn(story)).to.deep.equal([14, 15, 16, 17, 18, 19]);
  });
});

describe('A node without a route', () => {
  const graph = graphOf(`
    write -> judge?
    judge? -approve-> end
  `);

  it('fails the run, naming the node and the values of its conditions', () => {
    const story = given(graph)
      .whenAll(wrote('write'), scored('judge', 7.5))
      .then(
        'NodeCompleted judge 2.1 ->',
        'RunFailed no_route: No outgoing edge of node "judge" holds: route rework, score 7.5',
      );
    expect(failureOf(story.run)?.node).to.equal('judge');
    expect(flatState(story.run)).to.deep.include({ status: 'failed', iterationCount: 1 });
    expect(story.run.progress.shown).to.include({ score: 7.5, draft: 'by write' });
  });

  it('does not occur after a critic, because its last verdict applies to later nodes too', () => {
    const behind = graphOf(`
      judge? -> write
      write -approve-> good
      write -rework-> bad
    `);
    given(behind)
      .whenAll(scored('judge', 9), wrote('write'))
      .then('NodeCompleted write 2.1 -> good', 'NodeStarted good 3.1');
    given(behind)
      .whenAll(scored('judge', 2), wrote('write'))
      .then('NodeCompleted write 2.1 -> bad', 'NodeStarted bad 3.1');
  });
});
