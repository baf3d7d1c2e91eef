import { expect } from 'chai';
import { codePoints, isLonger, maxNodeExecutions } from '../../src/graph/limits.js';

describe('Limits of a council', () => {
  it('allow 50 node executions for small graphs and three per node for large ones', () => {
    expect([0, 3, 16, 17, 200].map(maxNodeExecutions)).to.deep.equal([50, 50, 50, 51, 600]);
  });

  it('count a text in bytes of its JSON form', () => {
    const text = '"é\u0000';
    const bytes = Buffer.byteLength(JSON.stringify(text));
    expect([bytes - 1, bytes].map((limit) => isLonger(text, limit))).to.deep.equal([true, false]);
  });

  it('count a draft in code points', () => {
    expect(['', 'é', '😀', '\ud800x'].map(codePoints)).to.deep.equal([0, 1, 1, 2]);
  });
});
