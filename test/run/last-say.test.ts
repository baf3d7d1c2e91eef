import { expect } from 'chai';
import type { Graph, StateOverride } from '../../src/generated/schemas.js';
import type { RunState } from '../../src/run/state.js';
import type { Story } from '../support/given.js';
import { given, graphOf, graphWith, playOut, scored, activeNodes, wrote } from '../support/given.js';
import { pauseOf } from '../../src/run/state.js';
import { flatState } from '../support/whole-run.js';

const COUNCIL = graphOf('write -> judge?; judge? -rework-> write; judge? -approve-> polish');

/** The same council, routed by its own conditions. */
function routedBy(onward: string, back: string, graph = COUNCIL): Graph {
  const edges = graph.edges.map((edge) => {
    if (edge.condition === null) return edge;
    return { ...edge, condition: edge.condition === 'approve' ? onward : back };
  });
  return graphWith(graph.nodes, edges);
}

/** Continues with the override, if there is one, up to the next pause or the end. The critic gives this score. */
function goneOn(story: Story, score: number, override?: StateOverride): Story {
  const decided = override === undefined ? story.whenApproved() : story.whenModified(override);
  return playOut(decided, (node, { plan }) => (plan.node(node).role === 'critic' ? scored(node, score) : wrote(node)));
}

const nextOf = ({ run }: Story): readonly string[] | undefined => pauseOf(run)?.nextNodes;
const times = ({ progress }: RunState): number => progress.scores['judge'] ?? 0;

/** The council paused after the critic's n-th score. The earlier scores are 4. */
function judged(count: number, score: number, graph = COUNCIL): Story {
  let story = given(graph, { godMode: true });
  while (times(story.run) < count) story = goneOn(story, times(story.run) === count - 1 ? score : 4);
  return story;
}

describe("A critic's fifth score", () => {
  it('counts as approve, even if it is low', () => {
    const story = judged(5, 4);
    expect(nextOf(story)).to.deep.equal(['polish']);
    expect(story.run.progress.shown).to.include({ score: 4, verdict: 'approve' });
    expect(judged(4, 4).run.progress.shown).to.include({ score: 4, verdict: 'rework' });
  });

  it("does not lead back after a human's correction", () => {
    for (const [given, corrected] of [
      [4, 3],
      [9, 2],
      [9, 7.9],
      [4, 9],
    ] as const) {
      const story = judged(5, given).whenModified({ critic_score: corrected });
      expect(activeNodes(story.run)).to.deep.equal(['polish']);
      expect(story.run.progress.shown).to.include({ score: corrected, verdict: 'approve' });
    }
    expect(activeNodes(judged(4, 9).whenModified({ critic_score: 3 }).run)).to.deep.equal(['write']);
  });

  it('leads back only when a human asks for rework', () => {
    let story = judged(5, 4);
    for (const score of [3, 4, 9]) {
      const sent = goneOn(story, score, { route_decision: 'rework', critic_score: 1 });
      expect(sent.run.progress.shown).to.include({ verdict: 'rework', score: 1 });
      expect(nextOf(sent)).to.deep.equal(['judge']);
      story = goneOn(sent, score);
      expect(nextOf(story)).to.deep.equal(['polish']);
      expect(activeNodes(story.whenModified({ critic_score: 2 }).run)).to.deep.equal(['polish']);
    }
    expect(times(story.run)).to.equal(8);
  });
});

describe('Expressions over the score', () => {
  const expressive = routedBy('score >= 9', 'score < 9');

  it('do not lead back by a corrected score from the fifth on', () => {
    for (const corrected of [1, 8.5]) {
      const story = judged(5, 9, expressive).whenModified({ critic_score: corrected });
      expect(activeNodes(story.run)).to.deep.equal(['polish']);
      expect(story.run.progress.shown.score).to.equal(corrected);
    }
    expect(activeNodes(judged(4, 9, expressive).whenModified({ critic_score: 1 }).run)).to.deep.equal(['write']);
  });

  it('may lead to another critic that can lead back', () => {
    const nested = graphWith(graphOf('write -> judge?; judge? -> second?; second? -> polish').nodes, [
      { id: '1', source: 'write', target: 'judge', condition: null },
      { id: '2', source: 'judge', target: 'write', condition: 'score < 8' },
      { id: '3', source: 'judge', target: 'second', condition: 'score >= 8' },
      { id: '4', source: 'second', target: 'write', condition: 'score < 8' },
      { id: '5', source: 'second', target: 'polish', condition: 'score >= 8' },
    ]);
    expect(activeNodes(judged(5, 4, nested).whenModified({ critic_score: 9 }).run)).to.deep.equal(['second']);
  });

  it('do not lead back through another node', () => {
    const graph = graphOf('write -> judge?; judge? -rework-> notes; notes -> write; judge? -approve-> polish');
    const story = judged(5, 9, routedBy('score >= 8', 'score < 8', graph)).whenModified({ critic_score: 1 });
    expect(activeNodes(story.run)).to.deep.equal(['polish']);
  });

  it('do not lead back behind a later node', () => {
    const graph = routedBy(
      'score >= 8',
      'score < 8',
      graphOf('write -> judge?; judge? -> edit; edit -rework-> write; edit -approve-> end'),
    );
    const paused = judged(5, 9, graph);
    expect(nextOf(paused)).to.deep.equal(['edit']);
    expect(nextOf(goneOn(paused, 9, { critic_score: 2 }))).to.deep.equal(['end']);
  });
});

describe('A run whose critic never approves', () => {
  for (const [name, graph] of [
    ['verdicts', COUNCIL],
    ['the route', routedBy("route == 'approve'", "route == 'rework'")],
  ] as const) {
    it(`ends at the writer when a human sends the shown state back at each pause: routed by ${name}`, () => {
      let story = given(graph, { godMode: true });
      while (story.run.phase.status === 'paused') {
        const { score, verdict } = story.run.progress.shown;
        story = goneOn(story, 4, { critic_score: score, route_decision: verdict });
      }
      expect(flatState(story.run)).to.deep.include({
        status: 'completed',
        finalDraft: 'by polish',
        scores: { judge: 5 },
      });
      expect(story.run.progress.shown).to.include({ score: 4, verdict: 'approve' });
    });
  }
});
