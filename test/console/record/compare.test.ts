import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import type { ComparedRuns } from '../../../src/console/record/compare.js';
import { compareRuns } from '../../../src/console/record/compare.js';
import { history, recordOf } from '../../support/console-records.js';
import { given, graphOf, scored, wrote } from '../../support/given.js';

const COUNCIL = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish');

describe('Two runs side by side', () => {
  it('finds no difference between a run and itself', () => {
    const events = history('branches');
    expect(compared(events, events).pairs.every(({ similarity }) => similarity === 'same')).to.equal(true);
  });

  it('aligns executions by node and occurrence', () => {
    const begun = given(COUNCIL).when(wrote('write')).when(scored('judge', 4));
    const left = begun.whenAll(
      wrote('write', 'Second'),
      scored('judge', 5),
      wrote('write', 'Third'),
      scored('judge', 9),
    );
    const right = begun.whenAll(wrote('write', 'Another'), scored('judge', 8), wrote('polish'));
    const { pairs } = compared(left.events, right.events);
    expect(pairs.map(({ node, occurrence, similarity }) => `${node} ${occurrence} ${similarity}`)).to.deep.equal([
      'write 1 same',
      'judge 1 same',
      'write 2 differs',
      'judge 2 differs',
      'write 3 left',
      'judge 3 left',
      'polish 1 differs',
    ]);
  });

  it('places executions of the right run after their predecessor', () => {
    const begun = given(COUNCIL).when(wrote('write'));
    const left = begun.whenAll(scored('judge', 9), wrote('polish'));
    const right = begun.whenAll(scored('judge', 4), wrote('write', 'Again'), scored('judge', 9), wrote('polish'));
    expect(
      compared(left.events, right.events).pairs.map(
        ({ node, occurrence, similarity }) => `${node} ${occurrence} ${similarity}`,
      ),
    ).to.deep.equal(['write 1 same', 'judge 1 differs', 'write 2 right', 'judge 2 right', 'polish 1 same']);
  });

  it('treats inherited steps of a fork as equal', () => {
    const [parent, fork] = [history('branches'), history('fork-of-branches')];
    for (const [one, other, side] of [
      [parent, fork, 'left'],
      [fork, parent, 'right'],
    ] as const) {
      const result = compared(one, other);
      expect(result.fork?.parent).to.equal(side);
      // The fork has executed `left` again, with the same result.
      expect(result.pairs.slice(0, 3).map(({ node }) => node)).to.deep.equal(['plan', 'left', 'right']);
      expect(result.pairs.slice(0, 3).every(({ similarity }) => similarity === 'same')).to.equal(true);
    }
  });

  it('adds executions while one of them is still running', () => {
    const events = history('fixed-graph');
    const { pairs } = compared(events, events.slice(0, 4));
    expect(pairs.map(({ similarity }) => similarity)).to.deep.equal(['differs', 'left', 'left', 'left', 'left']);
    expect(compareRuns({ record: recordOf([]), seq: -1 }, { record: recordOf(events), seq: 99 }, '')).to.equal(null);
  });
});

function compared(left: readonly RunEvent[], right: readonly RunEvent[]): ComparedRuns {
  const side = (events: readonly RunEvent[]) => ({ record: recordOf(events), seq: events.length - 1 });
  const result = compareRuns(side(left), side(right), left.at(-1)?.at ?? '');
  if (result === null) throw new Error('nothing to compare');
  return result;
}
