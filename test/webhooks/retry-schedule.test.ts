import { expect } from 'chai';
import { nextAttemptMs } from '../../src/webhooks/attempt.js';

/** The waits between the attempts at a delivery that always fails, in milliseconds. */
function waitsMs(retryAfterMs: number): readonly number[] {
  const waits: number[] = [];
  let nowMs = 0;
  for (;;) {
    const nextMs = nextAttemptMs({ attempts: waits.length + 1, firstMs: 0, nowMs, retryAfterMs }, () => 0);
    if (nextMs === null) return waits;
    waits.push(nextMs - nowMs);
    nowMs = nextMs;
  }
}

describe('The attempts at a delivery', () => {
  it('become rare when the receiver asks for the next one at once each time, so that the log does not fill', () => {
    const waits = waitsMs(0);
    expect(waits.slice(0, 8).map((ms) => ms / 1000)).to.deep.equal([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(waits.length).to.be.below(4_400);
  });

  it('come when the receiver asks for them, if it asks for a minute or more', () => {
    expect(new Set(waitsMs(60_000))).to.deep.equal(new Set([60_000]));
  });
});
