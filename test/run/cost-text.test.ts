import { expect } from 'chai';
import { costText, dollarText } from '../../src/run/cost-text.js';

describe('A cost as text', () => {
  it('has two digits that count, or cents from a dollar on', () => {
    expect([0, 1e-7, 0.00012, 0.0421, 0.3, 0.994, 0.9951, 1, 12.345, 1234].map(dollarText)).to.deep.equal([
      ...['$0', 'less than $0.0001', '$0.00012', '$0.042', '$0.30', '$0.99', '$1.00', '$1.00', '$12.35', '$1234.00'],
    ]);
  });

  it('says that an unknown cost is not reported, and never 0', () => {
    expect([null, 0].map((cost) => costText(cost))).to.deep.equal(['cost not reported', '$0']);
  });
});
