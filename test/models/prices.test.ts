import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ModelUsage } from '../../src/models/port.js';
import { costOf, faultIn, mostCostOf, priceTable } from '../../src/models/prices.js';
import { dollarsOf } from '../../src/system/dollars.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const SHIPPED = JSON.parse(
  readFileSync(new URL('../../../schemas/tables/prices.json', import.meta.url), 'utf8'),
) as Record<string, Record<string, unknown>>;

const USAGE: ModelUsage = {
  inputTokens: 1000,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  outputTokens: 100,
  reasoningTokens: null,
};
const PRICE = { input: 1e-6, output: 10e-6, cacheRead: 0.1e-6, cacheWrite: 1.25e-6 };

describe('Prices', () => {
  it('that are shipped name their date and their source', () => {
    expect(Object.keys(SHIPPED).length).to.be.at.least(60);
    for (const [model, entry] of Object.entries(SHIPPED)) {
      expect(model).to.match(/^[a-z]+\/./);
      expect(entry['read_at'], model).to.match(/^2026-\d\d-\d\d$/);
      expect(entry['source'], model).to.be.a('string');
      expect(priceTable(SHIPPED, null, sha256).priceOf(model), model).to.not.equal(null);
    }
  });

  it('of a file win over the shipped ones, by the full name before the bare one', () => {
    const own = {
      'gpt-5.4': { input_cost_per_token: 7e-6, output_cost_per_token: 8e-6, litellm_provider: 'openai' },
      'openai/gpt-5.5': { input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
      'gpt-5.5': { input_cost_per_token: 3e-6, output_cost_per_token: 4e-6 },
      'mine/free': { input_cost_per_token: 0, output_cost_per_token: 0 },
    };
    const table = priceTable(SHIPPED, own, sha256);
    expect(table.priceOf('openai/gpt-5.4')).to.include({ input: 7e-6, output: 8e-6 });
    expect(table.priceOf('openai/gpt-5.5')).to.include({ input: 1e-6 });
    expect(table.priceOf('azure/gpt-5.5')).to.include({ input: 3e-6 });
    expect(table.priceOf('mine/free')).to.include({ input: 0, output: 0 });
    expect(table.priceOf('mine/other')).to.equal(null);
    expect(table.originOf('openai/gpt-5.4')).to.equal('PRICES_FILE');
    expect(table.originOf('openai/o3')).to.match(/LiteLLM, read on 2026-/);
  });

  it('have a hash that follows from what they are, not from the order of a file', () => {
    const hashOf = (own: Record<string, unknown> | null): string => priceTable(SHIPPED, own, sha256).hash;
    const a = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 };
    expect(hashOf({ a, b: a })).to.equal(hashOf({ b: a, a: { ...a, mode: 'chat' } }));
    expect(hashOf({ a })).to.not.equal(hashOf({ b: a }));
    expect(hashOf(null)).to.match(/^[0-9a-f]{64}$/);
  });

  it('of the offline model are 0', () => {
    expect(costOf(USAGE, priceTable({}, null, sha256).priceOf('offline/offline-1'))).to.equal(0);
  });
});

describe('Cost of a call', () => {
  it('prices cached and written tokens by their own prices', () => {
    expect(costOf(USAGE, PRICE)).to.equal(0.002);
    const cached = { ...USAGE, cachedInputTokens: 600, cacheWriteTokens: 100 };
    expect(costOf(cached, PRICE)).to.equal(0.001485);
    expect(costOf(cached, { ...PRICE, cacheRead: null, cacheWrite: null })).to.equal(0.002);
  });

  it('is unknown without a price or without a count, never 0', () => {
    expect(costOf(USAGE, null)).to.equal(null);
    expect(costOf({ ...USAGE, inputTokens: null }, PRICE)).to.equal(null);
    expect(costOf({ ...USAGE, outputTokens: null }, PRICE)).to.equal(null);
  });

  it('of a long prompt is that of its tier for all tokens, as the shipped table has it', () => {
    const price = priceTable(SHIPPED, null, sha256).priceOf('gemini/gemini-2.5-pro');
    const asked = (inputTokens: number) => costOf({ ...USAGE, inputTokens, outputTokens: 0 }, price);
    expect(asked(200_000)).to.be.closeTo(0.25, 1e-9);
    expect(asked(300_000)).to.be.closeTo(0.75, 1e-9);
    expect(costOf({ ...USAGE, inputTokens: 300_000, cachedInputTokens: 100_000 }, price)).to.be.closeTo(
      200_000 * 2.5e-6 + 100_000 * 2.5e-7 + 100 * 15e-6,
      1e-9,
    );
  });

  it('is that of the last of several tiers that the prompt is above; a tier without a price keeps the one before', () => {
    const entry = {
      input_cost_per_token: 1e-6,
      output_cost_per_token: 2e-6,
      cache_read_input_token_cost: 1e-7,
      output_cost_per_token_above_256k_tokens: 8e-6,
      input_cost_per_token_above_256k_tokens: 3e-6,
      input_cost_per_token_above_128k_tokens: 2e-6,
      output_cost_per_token_above_128k_tokens: 4e-6,
      input_cost_per_token_above_128k_tokens_priority: 9,
      input_cost_per_token_batches: 9,
    };
    const table = priceTable({}, { m: entry }, sha256);
    expect(faultIn({ m: entry })).to.equal(null);
    const costs = [128_000, 128_001, 256_001].map((inputTokens) =>
      costOf({ ...USAGE, inputTokens, outputTokens: 1000, cachedInputTokens: 1000 }, table.priceOf('x/m')),
    );
    const expected = [127_000 * 1e-6 + 1e-4 + 2e-3, 127_001 * 2e-6 + 1e-4 + 4e-3, 255_001 * 3e-6 + 1e-4 + 8e-3];
    expected.forEach((cost, index) => expect(costs[index]).to.be.closeTo(cost, 1e-9));
  });

  it('of tokens that are cached for an hour is higher', () => {
    const price = priceTable(SHIPPED, null, sha256).priceOf('anthropic/claude-sonnet-4-5');
    const written = { ...USAGE, inputTokens: 1000, cacheWriteTokens: 1000, outputTokens: 0 };
    expect(costOf(written, price)).to.be.closeTo(3.75e-3, 1e-9);
    expect(costOf({ ...written, cacheWriteHourTokens: 400 }, price)).to.be.closeTo(600 * 3.75e-6 + 400 * 6e-6, 1e-9);
    const long = { ...written, inputTokens: 300_000, cacheWriteTokens: 300_000, cacheWriteHourTokens: 300_000 };
    expect(costOf(long, price)).to.be.closeTo(3.6, 1e-9);
  });

  it('that a call may reach is that of the most expensive tier up to its length', () => {
    const price = priceTable(SHIPPED, null, sha256).priceOf('gemini/gemini-2.5-pro');
    if (price === null) throw new Error('The table has no such price');
    expect(dollarsOf(mostCostOf({ inputTokens: 200_000, outputTokens: 1000 }, price))).to.equal(0.26);
    expect(dollarsOf(mostCostOf({ inputTokens: 300_000, outputTokens: 1000 }, price))).to.equal(0.765);
    const falling = { ...PRICE, tiers: [{ ...PRICE, input: 0.5e-6, above: 1000 }] };
    expect(dollarsOf(mostCostOf({ inputTokens: 2000, outputTokens: 0 }, falling))).to.equal(2e-3);
  });

  it('refuses a price of a tier that no model has', () => {
    const wrong = {
      input_cost_per_token: 1e-6,
      output_cost_per_token: 1e-6,
      input_cost_per_token_above_200k_tokens: 2.5,
    };
    expect(faultIn({ wrong })?.accepted).to.include('input_cost_per_token_above_200k_tokens');
  });

  it('that the provider reports wins', () => {
    expect(costOf({ ...USAGE, costUsd: 0.5 }, null)).to.equal(0.5);
  });
});
