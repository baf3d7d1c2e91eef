import { expect } from 'chai';
import { TransitionCache } from '../../../src/run/chart/machine.js';

/** A state of a graph with this many nodes: a region for each, active if its bit in the number is set. */
function stateOf(number: number, nodes: number): { readonly value: { readonly running: Record<string, string> } } {
  const region = (at: number): [string, string] => [`n${at}`, (number >> at) % 2 === 1 ? 'active' : 'idle'];
  return { value: { running: Object.fromEntries(Array.from({ length: nodes }, (_, at) => region(at))) } };
}

describe('The transition cache of a chart', () => {
  for (const [nodes, atLeast] of [
    [3, 1_000],
    [200, 20],
  ] as const) {
    it(`is bounded for a graph of ${nodes} nodes, and returns the states that it holds`, () => {
      const cache = new TransitionCache<ReturnType<typeof stateOf>>();
      let [chars, count] = [0, 0];
      for (let number = 0; number < 5_000; number += 1) {
        const to = stateOf(number, nodes);
        cache.keep('pending', `event ${number}`, to);
        const kept = cache.find('pending', `event ${number}`);
        if (kept === undefined) continue;
        expect(kept.value).to.deep.equal(to.value);
        count += 1;
        if (kept === to) chars += JSON.stringify(to.value).length;
      }
      expect(count).to.be.at.least(atLeast);
      expect(chars).to.be.at.most(110_000);
    });
  }

  it('shares equal states', () => {
    const cache = new TransitionCache<ReturnType<typeof stateOf>>();
    const first = cache.keep('pending', 'one', stateOf(1, 3));
    expect(cache.keep('paused', 'other', stateOf(1, 3))).to.equal(first);
    cache.keep(first.value, 'next', stateOf(2, 3));
    expect(cache.find(first.value, 'next')?.value).to.deep.equal(stateOf(2, 3).value);
    expect(cache.find(first.value, 'one')).to.equal(undefined);
  });
});
