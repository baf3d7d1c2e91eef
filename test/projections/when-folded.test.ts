import { expect } from 'chai';
import type { WhenFoldedDeps } from '../../src/projections/when-folded.js';
import { whenFolded, whileFolded } from '../../src/projections/when-folded.js';
import { manualSystem } from '../support/manual-system.js';

describe('A question to views that are lost', () => {
  /** Views that hold what is recorded once they are folded, and nothing from when they are recreated until then. */
  function views() {
    let rows: readonly string[] = [];
    let refolds = 0;
    const deps: WhenFoldedDeps = {
      log: { head: () => Promise.resolve(null) },
      projector: {
        get refolds() {
          return refolds;
        },
        reached: () => Promise.resolve(void (rows = ['recorded'])),
      },
      system: manualSystem(),
    };
    const recreate = (): void => {
      rows = [];
      refolds += 1;
    };
    return { deps, recreate, ask: () => Promise.resolve(rows) };
  }

  it('while it is asked is not answered from the new ones before they are folded', async () => {
    const { deps, recreate, ask } = views();
    let asked = 0;
    const answer = await whenFolded(deps, () => {
      asked += 1;
      if (asked === 1) recreate();
      return ask();
    });
    expect(answer).to.deep.equal(['recorded']);
  });

  it('since the question before it waits until they are folded', async () => {
    const { deps, recreate, ask } = views();
    const { refolds } = deps.projector;
    recreate();
    expect(await whileFolded(deps, refolds, ask)).to.deep.equal(['recorded']);
  });
});
