import { expect } from 'chai';
import type { StepFailure } from '../../../src/council/executors.js';
import { retryInMs } from '../../../src/run/runs/attempts.js';

const ALMOST_ONE = 1 - 2 ** -53;

describe('retryInMs', () => {
  const cases: readonly [title: string, failures: number, random: number, asked: number | undefined, waitMs: number][] =
    [
      ['nothing after the first failure at the lowest draw', 1, 0, undefined, 0],
      ['up to half a second after the first failure', 1, ALMOST_ONE, undefined, 500],
      ['half of that at a middle draw', 1, 0.5, undefined, 250],
      ['up to a second after the second', 2, ALMOST_ONE, undefined, 1_000],
      ['up to two seconds after the third', 3, ALMOST_ONE, undefined, 2_000],
      ['whole milliseconds', 1, 0.3333, undefined, 167],
      ['up to 16 seconds after the sixth', 6, ALMOST_ONE, undefined, 16_000],
      ['at most 30 seconds from the seventh on', 7, ALMOST_ONE, undefined, 30_000],
      ['at most 30 seconds after two thousand', 2_000, ALMOST_ONE, undefined, 30_000],
      ['what the provider asks for when that is longer', 1, ALMOST_ONE, 7_000, 7_000],
      ['its own draw when the provider asks for less', 4, ALMOST_ONE, 1_000, 4_000],
      ['at most a minute, whatever the provider asks for', 1, 0, 86_400_000, 60_000],
      ['exactly a minute when asked to', 1, 0, 60_000, 60_000],
    ];
  for (const [title, failures, random, asked, waitMs] of cases) {
    it(`waits ${title}`, () => {
      const failure: StepFailure = { kind: 'rate_limited', message: 'Slow down', retryable: true };
      const heard = asked === undefined ? failure : { ...failure, retryAfterMs: asked };
      expect(retryInMs(heard, { failures, maxAttempts: 3_000, random })).to.equal(waitMs);
    });
  }

  it('gives up at the last attempt', () => {
    const failure: StepFailure = { kind: 'rate_limited', message: 'Slow down', retryable: true, retryAfterMs: 10 };
    const waits = [1, 2, 3, 4, 5].map((failures) => retryInMs(failure, { failures, maxAttempts: 4, random: 0 }));
    expect(waits).to.deep.equal([10, 10, 10, null, null]);
    expect(retryInMs(failure, { failures: 1, maxAttempts: 1, random: 0 })).to.equal(null);
  });

  it('does not retry a permanent failure', () => {
    const failure: StepFailure = { kind: 'draft_too_large', message: 'Too large', retryable: false, retryAfterMs: 10 };
    expect(retryInMs(failure, { failures: 1, maxAttempts: 4, random: 0.5 })).to.equal(null);
  });
});
