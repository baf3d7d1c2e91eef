import { expect } from 'chai';
import { passScoreOf, passScoreText } from '../../../src/console/record/pass-scores.js';
import { present } from '../../../src/system/element.js';
import { given, graphOf } from '../../support/given.js';
import { history, recordOf } from '../../support/console-records.js';

describe('The score that passes a draft', () => {
  /** @param conditions in place of words on the edges */
  const passOf = (lines: string, conditions: Readonly<Record<string, string>> = {}): string | null => {
    const { edges, ...graph } = graphOf(`write -> judge?; ${lines}`);
    const { events } = given({
      ...graph,
      edges: edges.map((edge) => ({ ...edge, condition: conditions[edge.condition ?? ''] ?? edge.condition })),
    });
    const pass = passScoreOf(present(recordOf(events).stateAt(0), 'state'), 'judge');
    return pass === null ? null : passScoreText(pass);
  };

  it('is that of the built-in council for its critic and for words of a route', () => {
    const state = present(recordOf(history('fixed-graph')).stateAt(0), 'state');
    expect(passScoreOf(state, 'critic_agent')).to.deep.equal({ score: 8, isExclusive: false });
    expect(passOf('judge -rework-> write; judge -approve-> polish')).to.equal('8');
  });

  it('is the one in the conditions of the critic', () => {
    expect(passOf('judge -back-> write; judge -> polish', { back: 'score < 6.5' })).to.equal('6.5');
    expect(passOf('judge -on-> polish; judge -> write', { on: 'score > 7' })).to.equal('more than 7');
    expect(passOf('judge -on-> polish; judge -rework-> write', { on: 'score >= 9 || iteration >= 4' })).to.equal('9');
  });

  it('is none if no score sends a draft back, or each does', () => {
    expect(passOf('judge -> polish')).to.equal(null);
    expect(passOf('judge -on-> polish; judge -off-> drop', { on: 'score >= 5', off: 'score < 5' })).to.equal(null);
    expect(passOf('judge -on-> polish; judge -> write', { on: 'iteration >= 3' })).to.equal(null);
    expect(passScoreOf(present(recordOf(history('fixed-graph')).stateAt(0), 'state'), 'gone')).to.equal(null);
  });
});
