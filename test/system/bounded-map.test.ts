import { expect } from 'chai';
import { BoundedMap } from '../../src/system/bounded-map.js';

describe('BoundedMap', () => {
  it('drops the entry that was set longest ago when one more than its limit is set', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).set('c', 3);
    expect([...map]).to.deep.equal([
      ['b', 2],
      ['c', 3],
    ]);
  });

  it('makes an entry that is set again the newest', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    expect([...map]).to.deep.equal([
      ['a', 3],
      ['c', 4],
    ]);
  });

  it('drops nothing if the caller deletes entries before the limit is reached', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).delete('a');
    expect([...map.set('c', 3).keys()]).to.deep.equal(['b', 'c']);
  });
});
