import { expect } from 'chai';
import { VIEWS_LOST, renewableViews } from '../../../src/projections/views/views-renewal.js';
import type { ViewsStore } from '../../../src/projections/views/views-store.js';

const nothingOf: ViewsStore = {
  checkpoint: null,
  write: () => undefined,
  find: () => null,
  list: () => [],
  count: () => 0,
  unfinished: () => [],
  paused: () => [],
  deadlines: () => [],
  blueprintIds: () => [],
  blueprintRecords: () => [],
  documents: () => [],
  document: () => null,
  corruptRuns: () => [],
  saveCorrupt: () => undefined,
  removeCorrupt: () => undefined,
  close: () => undefined,
};

describe('Views that can be renewed', () => {
  /** The methods that a test asks of. */
  const storeOf = (find: () => null): ViewsStore => ({ ...nothingOf, find });
  const damaged = storeOf(() => {
    throw new Error('database disk image is malformed');
  });

  it('answer nothing between the damage and the moment that the loss is accepted', () => {
    const views = renewableViews(damaged, () => storeOf(() => null));
    expect(() => views.find('a')).to.throw(VIEWS_LOST);
    expect(() => views.write({ runs: [], blueprints: [], documents: [] }, null)).to.throw(VIEWS_LOST);
    views.accept();
    expect(views.find('a')).to.equal(null);
  });

  it('are begun anew once, and lost for good when they are damaged again', () => {
    let begun = 0;
    const views = renewableViews(damaged, () => {
      begun += 1;
      return damaged;
    });
    for (let time = 0; time < 3; time += 1) {
      expect(() => views.find('a')).to.throw(VIEWS_LOST);
      views.accept();
    }
    expect(begun).to.equal(1);
  });

  it('take no other failure for damage', () => {
    const busy = storeOf(() => {
      throw new Error('database is locked');
    });
    expect(() => renewableViews(busy, () => damaged).find('a')).to.throw('database is locked');
  });
});
