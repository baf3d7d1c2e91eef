import { expect } from 'chai';
import type { ReadDeps } from '../../src/projections/read-up-to-date.js';
import { readUpToDate } from '../../src/projections/read-up-to-date.js';
import { manualSystem } from '../support/manual-system.js';

describe('A query of lost stored views', () => {
  /** Views that are empty after they are recreated, until they are folded again. */
  function views() {
    let rows: readonly string[] = [];
    let rebuilds = 0;
    const deps: ReadDeps = {
      log: { head: () => Promise.resolve(null) },
      projector: {
        get rebuilds() {
          return rebuilds;
        },
        waitFor: () => Promise.resolve(void (rows = ['recorded'])),
      },
      system: manualSystem(),
    };
    const recreate = (): void => {
      rows = [];
      rebuilds += 1;
    };
    return { deps, recreate, ask: () => Promise.resolve(rows) };
  }

  it('is repeated after the new views are folded', async () => {
    const { deps, recreate, ask } = views();
    let asked = 0;
    const answer = await readUpToDate(deps, () => {
      asked += 1;
      if (asked === 1) recreate();
      return ask();
    });
    expect(answer).to.deep.equal(['recorded']);
  });
});
