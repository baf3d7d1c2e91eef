import { expect } from 'chai';
import { materialSection, userMessage } from '../../src/models/material.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { FakeAnthropic } from '../support/fake-anthropic.js';
import { fakeAnthropic, refuses, says, streamsEvents } from '../support/fake-anthropic.js';
import { sends } from '../support/fake-server.js';
import type { Reply } from '../support/fake-server.js';
import { modelFailureOf, REQUEST, REPORTED_USAGE, TOOLS } from '../support/model-requests.js';
import { modelAt } from '../support/provider-models.js';

const KEY = 'sk-ant-secret-key-of-this-test';
const NOW = '2026-01-02T03:04:05.000Z';

describe('Anthropic', () => {
  let server: FakeAnthropic;
  let model: LanguageModel;
  const ask = (request: Partial<ModelRequest> = {}): Promise<ModelAnswer> =>
    model.ask({ ...REQUEST, ...request }, { signal: new AbortController().signal });

  beforeEach(async () => {
    server = await fakeAnthropic([says('A draft')]);
    model = await modelAt('anthropic', { baseUrl: `${server.url}/v1`, apiKey: KEY, model: 'claude-x', now: NOW });
  });
  afterEach(() => server.stop());

  it('is asked by its messages, with the key in its header and nowhere else', async () => {
    const request = { model: 'claude-sonnet-4-5', temperature: 0.5, maxOutputTokens: 99 };
    expect(await ask(request)).to.deep.equal({ text: 'A draft', usage: REPORTED_USAGE });
    const [call] = server.calls;
    expect(call).to.include({ method: 'POST', path: '/v1/messages' });
    expect(call?.headers).to.include({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' });
    expect(call?.headers).not.to.have.property('authorization');
    expect(JSON.stringify(call?.body)).not.to.include(KEY);
    expect(call?.body).to.include({ model: 'claude-sonnet-4-5', max_tokens: 99, temperature: 0.5 });
    expect(call?.body.system?.[0]?.text).to.equal(REQUEST.system);
    expect(call?.body.messages[0]?.content[0]).to.include({ text: REQUEST.prompt });
  });

  it('is sent no temperature where the model takes none, and the answer says so', async () => {
    expect(await ask({ model: 'claude-opus-4-7', temperature: 0.5 })).to.deep.include({ dropped: ['temperature'] });
    expect(server.calls[0]?.body).not.to.have.property('temperature');
  });

  it('is sent a limit of output tokens above its own maximum, which it refuses itself', async () => {
    server.answerBy([refuses(400, 'invalid_request_error', 'max_tokens: 200000 > 64000')]);
    const failure = await modelFailureOf(ask({ model: 'claude-haiku-4-5', maxOutputTokens: 200_000 }));
    expect(server.calls.map(({ body }) => body.max_tokens)).to.deep.equal([200_000]);
    expect(failure.message).to.include('max_tokens: 200000 > 64000');
  });

  it('is told to cache a long material, which begins every message with the same bytes', async () => {
    const material = 'A lease. '.repeat(500);
    await ask({ material });
    await ask({ material, prompt: 'Another prompt' });
    const [first, second] = server.calls.map(({ body }) => body.messages[0]?.content);
    expect(first?.[0]).to.deep.equal({
      type: 'text',
      text: materialSection(material),
      cache_control: { type: 'ephemeral' },
    });
    expect(second?.[0]).to.deep.equal(first?.[0]);
    expect(second?.[1]).to.deep.equal({ type: 'text', text: '\n\nAnother prompt' });
  });

  it('is sent a short material without a mark', async () => {
    await ask({ material: 'A lease' });
    expect(server.calls[0]?.body.messages[0]?.content).to.deep.equal([
      { type: 'text', text: userMessage({ material: 'A lease', prompt: REQUEST.prompt }) },
    ]);
  });

  it('sees its thoughts with their signature beside the tool calls they led to', async () => {
    const thought = { type: 'thinking', thinking: 'Look first.', signature: 'signed' };
    const called = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { query: 'oaks' } };
    server.answerBy([says([thought, { type: 'text', text: 'Let me see.' }, called], 'tool_use'), says('Done')]);
    const { text, calls = [], turn } = await ask({ tools: TOOLS });
    expect([text, calls]).to.deep.equal([
      'Let me see.',
      [{ id: 'toolu_1', name: 'look', argumentsJson: '{"query":"oaks"}' }],
    ]);
    const exchanges = calls.map((call) => ({ call, result: 'Old.' }));
    expect((await ask({ tools: TOOLS, rounds: [{ text, exchanges, turn }] })).text).to.equal('Done');
    const [, assistant, results] = server.calls[1]?.body.messages ?? [];
    expect(assistant?.content).to.containSubset([thought, { type: 'text', text: 'Let me see.' }, called]);
    expect(results?.content[0]).to.deep.include({ type: 'tool_result', tool_use_id: 'toolu_1' });
  });

  it('answers a critic as JSON, and by a tool for a model that is no Claude', async () => {
    const critique = { score: '8', feedback: '' };
    const call = [{ type: 'tool_use', id: 't', name: 'json', input: critique }];
    server.answerBy(({ body }) => says(body.tools === undefined ? JSON.stringify(critique) : call));
    for (const model of ['claude-x', 'model-x'])
      expect(JSON.parse((await ask({ answer: 'critique', model })).text), model).to.deep.equal(critique);
    expect(server.calls.map(({ body }) => body.tools?.[0]?.name)).to.deep.equal([undefined, 'json']);
  });

  it('counts tokens read from and written to its cache as input', async () => {
    const usage = { input_tokens: 11, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 7 };
    server.answerBy([says('x', 'end_turn', usage)]);
    expect((await ask()).usage).to.include({
      inputTokens: 131,
      cachedInputTokens: 100,
      cacheWriteTokens: 20,
      outputTokens: 7,
    });
  });

  const plain = { type: 'text', text: 'A draft' };
  const unknowable = { inputTokens: null, outputTokens: null };
  const odd: readonly (readonly [title: string, reply: Reply, usage: object])[] = [
    ['has no usage', sends({ type: 'message', content: [plain], stop_reason: 'end_turn' }), unknowable],
    ['counts null', says('A draft', 'end_turn', { input_tokens: null, output_tokens: 7 }), { inputTokens: null }],
    ['counts in words', says('A draft', 'end_turn', { input_tokens: '11' }), unknowable],
    ['has a thought without a signature', says([{ type: 'thinking', thinking: 'Hm.' }, plain]), REPORTED_USAGE],
    ['has a block of an unknown kind', says([{ type: 'future', data: [1] }, plain]), REPORTED_USAGE],
    ['has citations of an unknown kind', says([{ ...plain, citations: [{ type: 'x' }] }]), REPORTED_USAGE],
  ];
  for (const [title, reply, usage] of odd) {
    it(`is read where it ${title}; a count that is not reported is null`, async () => {
      server.answerBy([reply]);
      const answer = await ask();
      expect(answer.text).to.equal('A draft');
      expect(answer.usage).to.include(usage);
      expect(server.calls).to.have.length(1);
    });
  }

  it('streams without usage, with unknown events, blocks and pieces, and without message_stop', async () => {
    const start = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block });
    const piece = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta });
    server.answerBy([
      streamsEvents([
        { type: 'message_start', message: { usage: { input_tokens: 11 } } },
        { type: 'tomorrow' },
        start(0, { type: 'future' }),
        piece(0, { type: 'text_delta', text: 'Not this' }),
        { type: 'content_block_stop', index: 0 },
        start(1, { type: 'text' }),
        piece(1, { type: 'future_delta' }),
        piece(1, { type: 'text_delta', text: 'A draft' }),
        { type: 'content_block_stop', index: 1 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      ]),
    ]);
    const answer = await ask({ onToken: () => undefined });
    expect(answer.text).to.equal('A draft');
    expect(answer.usage).to.include({ inputTokens: 11, outputTokens: null });
    expect(server.calls).to.have.length(1);
  });

  const rows: readonly (readonly [title: string, reply: Reply, kind: string, retryable: boolean])[] = [
    ['a refusal', says('', 'refusal'), 'refused', false],
    [
      'an empty account',
      refuses(400, 'invalid_request_error', 'Your credit balance is too low to access the API.'),
      'quota_used_up',
      false,
    ],
    [
      'an overload in a stream',
      streamsEvents([{ type: 'error', error: { type: 'overloaded_error', message: 'Busy' } }]),
      'overloaded',
      true,
    ],
  ];
  for (const [title, reply, kind, retryable] of rows) {
    it(`${title} is ${kind}, ${retryable ? 'asked' : 'not asked'} again`, async () => {
      server.answerBy([reply]);
      const onToken = title.includes('stream') ? { onToken: () => undefined } : {};
      const { data } = await modelFailureOf(ask(onToken), KEY);
      expect([data.kind, data.retryable]).to.deep.equal([kind, retryable]);
    });
  }
});
