import { expect } from 'chai';
import type { RunState } from '../../../src/run/state.js';
import { isFinished } from '../../../src/run/state.js';
import type { Story } from '../../support/given.js';
import { attemptOf, completed, given, activeNodes } from '../../support/given.js';
import { drawsOf, named, outputOf, randomGraph } from '../../support/random-history.js';
import { IS_SOAK } from '../../support/soak.js';

const GRAPHS = IS_SOAK ? 600 : 15;

/**
 * Plays a random run to its end and approves its pauses. Calls `look` at every frontier, before any of its nodes has
 * ended.
 */
function played(seed: number, look: (run: RunState) => void): Story {
  const draws = drawsOf(seed);
  let story = given(randomGraph(draws), { godMode: draws.chance(0.5) });
  while (!isFinished(story.run)) {
    const active = activeNodes(story.run);
    if (active.length > 0 && active.length === story.run.progress.frontier.length) look(story.run);
    const at = active.length === 0 ? null : attemptOf(story.run, active[draws.below(active.length)] ?? '');
    story = at === null ? story.whenApproved() : story.when(completed(at, outputOf(story.run, at.node, at.step)));
  }
  return story;
}

describe('The frontiers of random graphs', () => {
  it('hold exactly the reached nodes that no other branch can still reach', () => {
    for (let seed = 1; seed <= GRAPHS; seed += 1) {
      named(seed, () => {
        played(seed, ({ plan, progress: { frontier: front, arrivals } }) => {
          const running = front.map(({ node }) => node);
          const waiting = arrivals.map(({ node }) => node);
          const reached = [...running, ...waiting];
          const isFree = (node: string): boolean => !reached.some((other) => plan.canStillReach(other, node));
          expect(running.filter(isFree)).to.deep.equal(running);
          expect(waiting.filter(isFree)).to.deep.equal([]);
        });
      });
    }
  });
});
