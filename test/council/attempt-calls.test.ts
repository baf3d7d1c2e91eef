import { expect } from 'chai';
import { AttemptCalls } from '../../src/council/attempt-calls.js';
import type { ModelUsage } from '../../src/models/port.js';
import { costOf } from '../../src/models/prices.js';
import { REQUEST } from '../support/model-requests.js';

const SHORT = { input: 1e-6, output: 1e-6, cacheRead: null, cacheWrite: null };
const PRICE = { ...SHORT, tiers: [{ ...SHORT, input: 2e-6, above: 200_000 }] };

describe('The calls of an attempt', () => {
  it('cost what each costs by itself: together they have no long prompt', async () => {
    const calls = new AttemptCalls({ costOf: (usage: ModelUsage) => costOf(usage, PRICE) });
    for (const inputTokens of [150_000, 150_000]) {
      await calls.begin(REQUEST);
      calls.end({ inputTokens, outputTokens: 0 });
    }
    expect(calls.total).to.include({ inputTokens: 300_000 });
    expect(calls.total.costUsd).to.be.closeTo(0.3, 1e-12);
  });
});
