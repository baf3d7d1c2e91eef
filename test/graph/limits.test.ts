import { expect } from 'chai';
import { codePoints, isLonger, jsonBytes, maxNodeExecutions } from '../../src/graph/limits.js';

describe('Limits of a council', () => {
  it('allow 50 node executions for small graphs and three per node for large ones', () => {
    expect([0, 3, 16, 17, 200].map(maxNodeExecutions)).to.deep.equal([50, 50, 50, 51, 600]);
  });

  it('count a text in bytes of its JSON form', () => {
    const text = '"é\u0000';
    const bytes = Buffer.byteLength(JSON.stringify(text));
    expect([bytes - 1, bytes].map((limit) => isLonger(text, limit))).to.deep.equal([true, false]);
  });

  it('count every character as JSON writes it', () => {
    for (let unit = 0; unit < 0x1_0000; unit += 1) {
      const text = `a${String.fromCharCode(unit)}`;
      if (jsonBytes(text) !== Buffer.byteLength(JSON.stringify(text))) expect.fail(`U+${unit.toString(16)}`);
    }
    expect(['', 'plain', 7, ['a', 1]].map(jsonBytes)).to.deep.equal([2, 7, 1, 7]);
  });

  it('count a draft in code points', () => {
    expect(['', 'é', '😀', '\ud800x'].map(codePoints)).to.deep.equal([0, 1, 1, 2]);
  });
});
