import { expect } from 'chai';
import { fieldDiff } from '../../../src/console/record/field-diff.js';

describe('The difference of two states', () => {
  it('names the fields that differ, with both values', () => {
    expect(fieldDiff({ score: 3, route: 'rework', same: 1 }, { score: 8, same: 1, extra: null })).to.deep.equal([
      { path: ['score'], before: 3, after: 8 },
      { path: ['extra'], before: undefined, after: null },
      { path: ['route'], before: 'rework', after: undefined },
    ]);
  });

  it('compares the items of lists by id', () => {
    const nodes = [
      { id: 'write', label: 'Write', tools: { webSearch: false } },
      { id: 'judge', label: 'Judge' },
    ];
    const changed = [
      { id: 'judge', label: 'Judge' },
      { id: 'write', label: 'Write', tools: { webSearch: true } },
      { id: 'new' },
    ];
    expect(fieldDiff({ nodes }, { nodes: changed })).to.deep.equal([
      { path: ['nodes', 'write', 'tools', 'webSearch'], before: false, after: true },
      { path: ['nodes', 'new'], before: undefined, after: { id: 'new' } },
    ]);
  });

  it('compares other lists as one value', () => {
    expect(fieldDiff({ feedback: ['a'] }, { feedback: ['a', 'b'] })).to.deep.equal([
      { path: ['feedback'], before: ['a'], after: ['a', 'b'] },
    ]);
    expect(fieldDiff([1, 2], [1, 2])).to.deep.equal([]);
    expect(fieldDiff('a', { a: 1 })).to.deep.equal([{ path: [], before: 'a', after: { a: 1 } }]);
  });

  it('handles names of object properties', () => {
    const after = JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}') as unknown;
    expect(fieldDiff({}, after).map(({ path }) => path.join('.'))).to.deep.equal(['__proto__', 'constructor']);
  });
});
