import { expect } from 'chai';
import type { Branch } from '../../../src/run/frontier/branch.js';
import { EMPTY_BRANCH, joinBranches } from '../../../src/run/frontier/branch.js';
import type { Story, When } from '../../support/given.js';
import { attemptOf, broke, given, graphOf, playOut, scored, activeNodes, wrote } from '../../support/given.js';
import { failureOf, finalDraftOf, pauseOf } from '../../../src/run/state.js';
import { flatState } from '../../support/whole-run.js';

const draftOf = ({ run }: Story): string | null => finalDraftOf(run);

/** The draft that an active node works on. */
function inputOf({ run }: Story, node: string): Branch {
  return attemptOf(run, node).branch;
}

const feedbackOf = (branch: Branch): readonly string[] => branch.feedback.map(({ text }) => text);

/** All permutations of a list. */
function ordersOf<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length < 2) return [items];
  return items.flatMap((first, at) => ordersOf(items.toSpliced(at, 1)).map((rest) => [first, ...rest]));
}

describe('Branches inside a rework loop', () => {
  const council = graphOf(`
    start -> a, b
    a, b -> judge?
    judge? -rework-> a
    judge? -approve-> end
  `);

  it('start together in every order of the nodes', () => {
    const [start, ...others] = council.nodes;
    for (const order of ordersOf(others)) {
      const nodes = start === undefined ? [...order] : [start, ...order];
      expect(activeNodes(given({ ...council, nodes }).when(wrote('start')).run)).to.deep.equal(['a', 'b']);
    }
  });

  it('pause together in God Mode, each round', () => {
    const loop = graphOf(`
      plan -> a, b
      a, b -> judge?
      judge? -rework-> plan
      judge? -approve-> end
    `);
    let story = given(loop, { godMode: true });
    const pauses: string[] = [];
    const scores = [3, 9];
    while (story.run.phase.status === 'paused') {
      pauses.push(pauseOf(story.run)?.nextNodes.join() ?? '');
      story = playOut(story.whenApproved(), (node) =>
        node === 'judge' ? scored(node, scores.shift() ?? 9) : wrote(node),
      );
    }
    expect(pauses).to.deep.equal(['plan', 'a,b', 'judge', 'plan', 'a,b', 'judge', 'end']);
    expect(flatState(story.run)).to.include({ status: 'completed', finalDraft: 'by end' });
  });

  it('of an inner loop join before the outer loop continues', () => {
    const nested = graphOf(`
      plan -> draft
      draft -> a, b
      a, b -> inner?
      inner? -rework-> draft
      inner? -approve-> outer?
      outer? -rework-> plan
      outer? -approve-> end
    `);
    const frontiers: string[] = [];
    const scores: Record<string, number[]> = { inner: [2, 9, 9], outer: [1, 9] };
    const { run } = playOut(given(nested), (node, state) => {
      if (attemptOf(state, node).step === state.progress.steps) frontiers.push(activeNodes(state).join());
      return node in scores ? scored(node, scores[node]?.shift() ?? 9) : wrote(node);
    });
    expect(flatState(run)).to.include({ status: 'completed' });
    expect(frontiers.filter((frontier) => frontier === 'b')).to.have.length(3);
  });

  it('that end there in two rounds keep only the later end', () => {
    const graph = graphOf(`
      plan -> aside, judge?
      judge? -rework-> plan
      judge? -approve-> last
    `);
    const first = given(graph).when(wrote('plan', 'P1'));
    expect(activeNodes(first.run)).to.deep.equal(['aside', 'judge']);
    const second = first.whenAll(wrote('aside', 'A1'), scored('judge', 1), wrote('plan', 'P2'));
    expect(activeNodes(second.run)).to.deep.equal(['aside', 'judge']);
    const { run } = second.whenAll(wrote('aside', 'A2'), scored('judge', 9), wrote('last', 'L'));
    expect(flatState(run)).to.include({ status: 'completed', finalDraft: '## Aside\nA2\n\n## Last\nL' });
  });
});

describe('A fork', () => {
  const graph = graphOf(`
    plan -> left, right
    left -> deep
    right, deep -> meet
  `);

  it('makes a branch wait for a longer one at their join', () => {
    const story = given(graph).whenAll(wrote('plan'), wrote('left'), wrote('right'));
    expect(activeNodes(story.run)).to.deep.equal(['deep']);
    expect(story.run.progress.arrivals.map(({ node }) => node)).to.deep.equal(['meet']);
    story.when(wrote('deep')).then('NodeCompleted deep 4.1 -> meet', 'NodeStarted meet 5.1');
  });

  it("shows the branch of the frontier's first node, and of the join after its start", () => {
    const shown = (...commands: readonly When[]): string | null =>
      given(graph).whenAll(wrote('plan'), ...commands).run.progress.shown.draft;
    expect(shown()).to.equal('by plan');
    expect(shown(wrote('right'))).to.equal('by plan');
    expect(shown(wrote('left'))).to.equal('by left');
    expect(shown(wrote('left'), wrote('right'))).to.equal('by left');
    expect(shown(wrote('left'), wrote('right'), wrote('deep'))).to.equal('## Right\nby right\n\n## Deep\nby deep');
  });

  it('does not occur when two linear edges lead to the same node', () => {
    given(graphOf('plan -> write, write'))
      .when(wrote('plan'))
      .then('NodeCompleted plan 1.1 -> write', 'NodeStarted write 2.1');
  });

  it('does not occur when a condition holds', () => {
    const routed = graphOf(`
      judge? -> left, right
      judge? -approve-> done
    `);
    given(routed).when(scored('judge', 8)).then('NodeCompleted judge 1.1 -> done', 'NodeStarted done 2.1');
    given(routed)
      .when(scored('judge', 7))
      .then('NodeCompleted judge 1.1 -> left right', 'NodeStarted left 2.1', 'NodeStarted right 3.1');
  });
});

describe('A frontier', () => {
  const commands = [wrote('a'), wrote('b'), scored('judge', 4)];

  it('ends with the same final draft in every order of its branches', () => {
    const ending = graphOf('plan -> a, b, judge?');
    const ends = ordersOf(commands).map((order) =>
      given(ending)
        .when(wrote('plan'))
        .whenAll(...order),
    );
    for (const { run } of ends) {
      expect(flatState(run)).to.include({ finalDraft: '## A\nby a\n\n## B\nby b', iterationCount: 3 });
      expect(run.progress.shown).to.include({ score: 4, verdict: 'rework' });
    }
  });
});

describe('A join', () => {
  const writers = 'plan -> a, b, c; c, a, b -> meet';
  const critics = 'first? -> strict?, silent, mild?; mild?, silent, strict? -> meet';
  const judged = (first: number, strict: number, mild: number, ...feedback: readonly string[]): readonly When[] => [
    scored('first', first, feedback[0]),
    scored('strict', strict, feedback[1]),
    wrote('silent'),
    scored('mild', mild, feedback[2]),
  ];

  const rows: readonly (readonly [title: string, graph: string, when: readonly When[], meet: object])[] = [
    [
      'puts the drafts in edge order, each under its label, a blank line between',
      writers,
      [wrote('plan'), wrote('a', 'A\n'), wrote('b', ''), wrote('c', '## C')],
      { draft: '## C\n## C\n\n## A\nA\n\n\n## B\n' },
    ],
    [
      'puts the drafts of a diamond with a longer side in edge order too',
      'plan -> left, right; left -> deep; right, deep -> meet',
      [wrote('plan'), wrote('left'), wrote('right'), wrote('deep')],
      { draft: '## Right\nby right\n\n## Deep\nby deep' },
    ],
    [
      'adds nothing for a branch without a draft of its own',
      'plan -> a, judge?, b; a, judge?, b -> meet',
      [wrote('plan'), wrote('a'), scored('judge', 5), wrote('b')],
      { draft: '## A\nby a\n\n## B\nby b' },
    ],
    [
      'includes a draft that inner branches share once, under its author',
      'plan -> left, right; left -> one?, two?; one?, two?, right -> meet',
      [wrote('plan'), wrote('left'), wrote('right'), scored('one', 5), scored('two', 4)],
      { draft: '## Left\nby left\n\n## Right\nby right', score: 4 },
    ],
    [
      'names the inner join as author when a critic has joined the inner branches',
      'plan -> left, right; left -> one, two; one, two -> judge?; right -> long; judge?, long -> meet',
      [wrote('plan'), wrote('left'), wrote('right'), wrote('one'), wrote('two'), wrote('long'), scored('judge', 5)],
      { draft: '## Judge\n## One\nby one\n\n## Two\nby two\n\n## Long\nby long' },
    ],
    [
      'keeps the draft before the fork when no branch wrote one',
      'plan -> strict?, mild?; strict?, mild? -> meet',
      [wrote('plan'), scored('strict', 3), scored('mild', 9)],
      { draft: 'by plan' },
    ],
    [
      'has no draft when nobody wrote one',
      'first? -> strict?, mild?; strict?, mild? -> meet',
      [scored('first', 1), scored('strict', 3), scored('mild', 9)],
      { draft: null },
    ],
    [
      'takes the lowest score with its verdict, and all feedback',
      critics,
      judged(1, 3, 9, 'before', 'strictly', 'mildly'),
      { score: 3, verdict: 'rework', feedback: ['before', 'strictly', 'mildly'] },
    ],
    [
      'keeps equal feedback twice',
      critics,
      judged(1, 3, 9, 'same', 'same', 'same'),
      { feedback: ['same', 'same', 'same'] },
    ],
    [
      'prefers a score of a branch to a lower one before the fork',
      critics,
      judged(1, 8, 9),
      { score: 8, verdict: 'approve' },
    ],
    [
      'keeps the score before the fork when no branch has one',
      'first? -> a, b; a, b -> meet',
      [scored('first', 6), wrote('a'), wrote('b')],
      { score: 6, verdict: 'rework' },
    ],
    [
      'takes the last score of one critic in two branches',
      'a -> b, k?; b -> meet; k? -rework-> e; k? -approve-> meet; e -> c, k; c -> meet',
      [wrote('a'), wrote('b'), scored('k', 3), wrote('e'), scored('k', 9), wrote('c')],
      { score: 9, verdict: 'approve' },
    ],
    [
      'lists feedback oldest first, shared feedback once',
      'first? -> a, one?; a -> two?; two? -> three?; three?, one? -> meet',
      [
        scored('first', 1, 'shared'),
        scored('one', 2, 'first'),
        wrote('a'),
        scored('two', 3, 'second'),
        scored('three', 4, 'third'),
      ],
      { feedback: ['shared', 'first', 'second', 'third'] },
    ],
    [
      'waits for a branch that a loop may still send again',
      'plan -> draft, notes; draft -> judge?; judge? -rework-> draft; judge? -approve-> meet; notes -> meet',
      [
        ...[wrote('plan'), wrote('draft', 'D1'), wrote('notes', 'N'), scored('judge', 1)],
        ...[wrote('draft', 'D2'), scored('judge', 9)],
      ],
      { draft: '## Draft\nD2\n\n## Notes\nN', score: 9 },
    ],
  ];
  for (const [title, graph, when, meet] of rows) {
    it(title, () => {
      const story = given(graphOf(graph)).whenAll(...when);
      expect(activeNodes(story.run)).to.deep.equal(['meet']);
      const branch = inputOf(story, 'meet');
      expect({ ...branch, feedback: feedbackOf(branch) }).to.deep.include(meet);
    });
  }

  it('shows line breaks and control characters of a label in an older record as spaces', () => {
    const label = 'A\r\n## B\u2028x\u0085y\tz\u0000';
    const graph = graphOf(writers);
    const nodes = graph.nodes.map((node) => ({ ...node, label: node.id === 'a' ? label : node.label }));
    const story = given({ ...graph, nodes }).whenAll(wrote('plan'), wrote('a'), wrote('b'), wrote('c'));
    expect(inputOf(story, 'meet').draft).to.equal('## C\nby c\n\n## A ## B x y z \nby a\n\n## B\nby b');
  });

  it('joins scores to the same result in every order', () => {
    const by = (scoreBy: string | null, scoreFrom: string, score: number): Branch => ({
      ...EMPTY_BRANCH,
      score,
      scoreFrom,
      scoreBy,
    });
    const branches = [by('k', '4', 1), by('k', '10', 9), by('other', '5', 7), by(null, 'g1', 8)];
    const into = { from: '11', by: 'b', labelOf: (id: string) => id };
    for (const order of ordersOf(branches)) {
      const joined = joinBranches(
        order.map((branch, at) => ({ branch, order: at })),
        into,
      );
      expect(joined).to.include({ score: 7, scoreBy: 'other' });
    }
  });
});

describe('Nested forks', () => {
  const graph = graphOf(`
    plan -> left, right
    left -> one, two
    one, two -> inner
    right -> long
    inner, long -> outer
  `);

  it('join the inner branches first, then the outer, each under its own labels', () => {
    const inner = given(graph).whenAll(wrote('plan'), wrote('left'), wrote('right'));
    expect(activeNodes(inner.run)).to.deep.equal(['one', 'two', 'long']);
    const middle = inner.whenAll(wrote('one'), wrote('two'), wrote('long'));
    expect(activeNodes(middle.run)).to.deep.equal(['inner']);
    expect(inputOf(middle, 'inner').draft).to.equal('## One\nby one\n\n## Two\nby two');
    const outer = middle.when(wrote('inner', 'Both'));
    expect(inputOf(outer, 'outer').draft).to.equal('## Inner\nBoth\n\n## Long\nby long');
  });

  it('meet across levels', () => {
    const across = graphOf(`
      plan -> left, right
      left -> one, two
      two -> three
      one, right -> meet
      three, meet -> end
    `);
    const story = given(across).whenAll(wrote('plan'), wrote('left'), wrote('right'), wrote('one'), wrote('two'));
    expect(activeNodes(story.run)).to.deep.equal(
      ['three', 'meet'].filter((node) => activeNodes(story.run).includes(node)),
    );
    expect(inputOf(story, 'meet').draft).to.equal('## One\nby one\n\n## Right\nby right');
    const end = story.whenAll(wrote('meet'), wrote('three'));
    expect(inputOf(end, 'end').draft).to.equal('## Three\nby three\n\n## Meet\nby meet');
  });
});

describe('Branches that end without meeting', () => {
  it('join at the end in the order of the nodes', () => {
    const graph = graphOf(`
      plan
      z, y, x
      plan -> x, y, z
    `);
    const story = given(graph).whenAll(wrote('plan'), wrote('x'), wrote('z'));
    expect(draftOf(story.when(wrote('y')))).to.equal('## Z\nby z\n\n## Y\nby y\n\n## X\nby x');
  });

  it('take the lowest score, and the draft before the fork when none wrote one', () => {
    const graph = graphOf('plan -> strict?, mild?');
    const { run } = given(graph).whenAll(wrote('plan'), scored('mild', 9, 'm'), scored('strict', 2, 's'));
    expect(finalDraftOf(run)).to.equal('by plan');
    expect(run.progress.shown).to.include({ score: 2, verdict: 'rework' });
    expect(feedbackOf(run.progress.shown)).to.deep.equal(['s', 'm']);
  });
});

describe('Waiting branches', () => {
  it('in a deadlock run in the order of the nodes', () => {
    const graph = graphOf(`
      plan
      q, p
      plan -> p, q
      p -> q
      q -> p
    `);
    given(graph, { limits: { maxNodeExecutions: 3 } })
      .when(wrote('plan'))
      .then('NodeCompleted plan 1.1 -> p q', 'NodeStarted q 2.1')
      .when(wrote('q'))
      .then('NodeCompleted q 2.1 -> p', 'NodeStarted p 3.1');
  });

  it('replace an arrival by the next one by the same edge', () => {
    const graph = graphOf(`
      a -> b, k?
      k? -rework-> a
      k? -approve-> d
      b -> d
    `);
    const sent = given(graph).whenAll(wrote('a', 'A1'), wrote('b', 'B1'), scored('k', 3), wrote('a', 'A2'));
    expect(activeNodes(sent.run)).to.deep.equal(['b', 'k']);
    expect(sent.run.progress.arrivals.map(({ node, branch }) => [node, branch.draft])).to.deep.equal([['d', 'B1']]);
    const judged = sent.whenAll(wrote('b', 'B2'), scored('k', 9));
    expect(inputOf(judged, 'd')).to.include({ draft: '## B\nB2', score: 9 });
    const { run } = judged.when(wrote('d', 'D'));
    expect(flatState(run)).to.include({ status: 'completed', finalDraft: 'D' });
    expect(run.progress.shown).to.include({ score: 9, verdict: 'approve' });
  });

  it('of a fork inside a loop keep nothing of the round before', () => {
    const graph = graphOf(`
      plan -> a, b
      a, b -> judge?
      judge? -rework-> plan
      judge? -approve-> end
    `);
    const round = (story: Story, name: string, score: number, until: string): Story =>
      playOut(
        story,
        (node) => (node === 'judge' ? scored('judge', score) : wrote(node, `${node} ${name}`)),
        (state) => state.progress.activeNode === until && state.progress.scores['judge'] === Number(name),
      );
    const first = round(given(graph), '1', 2, 'plan');
    expect(inputOf(first, 'plan')).to.deep.include({ draft: '## A\na 1\n\n## B\nb 1', score: 2, forks: [] });
    const second = round(first, '2', 8, 'end');
    expect(inputOf(second, 'end')).to.deep.include({ draft: '## A\na 2\n\n## B\nb 2', score: 8, forks: [] });
  });
});

describe('A failing branch', () => {
  it('fails the run while others are in flight', () => {
    const story = given(graphOf('plan -> a, b, c')).whenAll(wrote('plan'), wrote('a'), broke('b'));
    expect(flatState(story.run)).to.include({ status: 'failed', activeNode: 'c' });
    expect(failureOf(story.run)?.node).to.equal('b');
  });
});
