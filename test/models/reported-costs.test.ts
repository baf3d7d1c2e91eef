import { expect } from 'chai';
import type { ModelUsage } from '../../src/models/port.js';
import { fakeAnthropic } from '../support/fake-anthropic.js';
import { fakeOpenAi } from '../support/fake-openai.js';
import { sends } from '../support/fake-server.js';
import { REQUEST } from '../support/model-requests.js';
import { modelAt } from '../support/provider-models.js';

const COUNTS = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 };

/**
 * The usage of an answer of a chat completion that reports this beside its counts.
 *
 * @param digits of a number that the usage holds as a text
 */
async function reported(usage: object, digits = ''): Promise<ModelUsage> {
  const choice = { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' };
  const body = JSON.stringify({ choices: [choice], usage: { ...COUNTS, ...usage } });
  const server = await fakeOpenAi([sends(body.replace(`"${digits}"`, digits))]);
  try {
    const model = await modelAt('openai', { baseUrl: `${server.url}/v1`, apiKey: 'k', model: 'm' });
    return (await model.ask(REQUEST, { signal: new AbortController().signal })).usage;
  } finally {
    await server.stop();
  }
}

describe('The cost that OpenRouter reports', () => {
  const details = { cost_details: { upstream_inference_cost: 0.0345 } };

  it('is what it charges, which holds the cost of the provider behind it', async () => {
    expect((await reported({ cost: 0.0009, is_byok: false, ...details })).costUsd).to.equal(0.0009);
    expect((await reported({ cost: 0.0009, ...details })).costUsd).to.equal(0.0009);
  });

  it("is its fee and the cost of the provider if the call uses the customer's own key there", async () => {
    expect((await reported({ cost: 0.0012, is_byok: true, ...details })).costUsd).to.be.closeTo(0.0357, 1e-12);
    expect((await reported({ cost: 0, is_byok: true, ...details })).costUsd).to.equal(0.0345);
  });

  it('is the exact sum of both', async () => {
    const upstream = { cost_details: { upstream_inference_cost: 0.2 } };
    expect((await reported({ cost: 0.1, is_byok: true, ...upstream })).costUsd).to.equal(0.3);
  });

  it('is unknown if no call can cost as much', async () => {
    // JSON reads the first as infinite.
    for (const cost of ['1e400', '1e308', '1000000'])
      expect(await reported({ cost }, cost)).not.to.have.property('costUsd');
  });

  it('is unknown, and not the fee, if the cost of that provider is missing', async () => {
    for (const cost_details of [undefined, null, {}, { upstream_inference_cost: null }])
      expect(await reported({ cost: 0.0012, is_byok: true, cost_details })).not.to.have.property('costUsd');
  });
});

describe('The usage that Anthropic reports', () => {
  it('counts the tokens that are cached for an hour', async () => {
    const cache = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 400 };
    const usage = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 500, cache_creation: cache };
    const body = { type: 'message', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn', usage };
    const server = await fakeAnthropic([sends(body)]);
    try {
      const model = await modelAt('anthropic', { baseUrl: `${server.url}/v1`, apiKey: 'k', model: 'm' });
      const answer = await model.ask(REQUEST, { signal: new AbortController().signal });
      expect(answer.usage).to.include({ inputTokens: 510, cacheWriteTokens: 500, cacheWriteHourTokens: 400 });
    } finally {
      await server.stop();
    }
  });
});
