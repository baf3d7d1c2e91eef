import { expect } from 'chai';
import {
  costOfTokens,
  dollarDigits,
  dollarsOf,
  dollarsUp,
  exactDollars,
  roundedDollars,
  sumOfDollars,
} from '../../src/system/dollars.js';
import { seededRandom } from '../support/seeded-random.js';

describe('An amount of US dollars', () => {
  it('is read and written without a change, large or small', () => {
    for (const usd of [0, 0.1, 0.3, 1.25e-6, 7.5e-8, 1e-12, 123_456.789, 1e21, 4.5e-13, -0.25]) {
      expect(dollarsOf(exactDollars(usd)), String(usd)).to.equal(usd);
    }
  });

  it('sums as decimals', () => {
    expect(sumOfDollars([0.1, 0.2])).to.equal(0.3);
    expect(sumOfDollars(Array.from({ length: 1_000 }, () => 0.1))).to.equal(100);
    expect(sumOfDollars([10_000, 1e-7, -1e-7])).to.equal(10_000);
    expect(sumOfDollars([])).to.equal(0);
  });

  it('keeps 10^-12 dollars beside a million dollars', () => {
    const sum = exactDollars(1_000_000) + exactDollars(1e-12);
    expect(sum - exactDollars(1e-12)).to.equal(exactDollars(1_000_000));
    expect(sum > exactDollars(1_000_000)).to.equal(true);
  });

  it('is the exact product of tokens and their price', () => {
    expect(dollarsOf(costOfTokens([[3, 0.1]]))).to.equal(0.3);
    expect(
      dollarsOf(
        costOfTokens([
          [7, 1.25e-6],
          [11, 1e-5],
        ]),
      ),
    ).to.equal(0.00011875);
    expect(dollarsOf(costOfTokens([[3, 1.2345678e-7]]))).to.equal(3.7037034e-7);
    expect(dollarsOf(costOfTokens([[1, 1e-30]])), 'below a unit').to.equal(1e-24);
  });

  it('rounds up to 10^-12 dollars, to a number that is not below it', () => {
    expect(dollarsUp(exactDollars(0.3))).to.equal(0.3);
    expect(dollarsUp(exactDollars(0.1 + 0.2))).to.equal(0.300000000001);
    expect(dollarsUp(exactDollars(1e-15))).to.equal(1e-12);
    const random = seededRandom(1);
    for (let round = 0; round < 2_000; round += 1) {
      const exact = BigInt(Math.floor(random() * 1e15)) * 10n ** BigInt(Math.floor(random() * 20));
      const up = exactDollars(dollarsUp(exact));
      expect(up >= exact, String(exact)).to.equal(true);
      // Not more than the next number of 16 digits above.
      expect(up - exact <= exact / 10n ** 15n + 10n ** 12n, String(exact)).to.equal(true);
    }
  });

  it('of earlier versions is shown without the noise of binary fractions', () => {
    for (const usd of [0.1 + 0.2, 3.6993840000000002, 1.0894220000000001, 5.0220460000000005]) {
      expect(String(roundedDollars(usd))).to.match(/^\d\.\d{1,6}$/);
    }
  });

  it('is written in digits without an exponent', () => {
    expect([0, 5, 0.5, 1e-7, 1.25e-10, 1e21].map(dollarDigits)).to.deep.equal([
      ...['0', '5', '0.5', '0.0000001', '0.000000000125', '1000000000000000000000'],
    ]);
  });
});
