import { expect } from 'chai';
import type { ModelFailed } from '../../src/errors.js';
import { modelAt as providerModelAt } from '../support/provider-models.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { FakeGemini, GeminiReply } from '../support/fake-gemini.js';
import { fakeGemini, refuses, says, saysSlowly, sends } from '../support/fake-gemini.js';
import { modelFailureOf, REQUEST, REPORTED_USAGE } from '../support/model-requests.js';

const KEY = 'AIza-secret-key-of-this-test';
const NOW = '2026-01-02T03:04:05.000Z';

describe('Gemini', () => {
  let server: FakeGemini;
  let model: LanguageModel;

  const modelAt = (baseUrl: string): Promise<LanguageModel> =>
    providerModelAt('gemini', { apiKey: KEY, baseUrl: `${baseUrl}/v1beta`, model: 'gemini-x', now: NOW });
  const ask = (request: Partial<ModelRequest> = {}, signal = new AbortController().signal): Promise<ModelAnswer> =>
    model.ask({ ...REQUEST, ...request }, { signal });
  const failureOf = (call: Promise<unknown>): Promise<ModelFailed> => modelFailureOf(call, KEY);
  const failureOn = (reply: GeminiReply): Promise<ModelFailed> => {
    server.answerBy([reply]);
    return failureOf(ask());
  };

  beforeEach(async () => {
    server = await fakeGemini([says('A draft')]);
    model = await modelAt(server.url);
  });
  afterEach(() => server.stop());

  describe('request', () => {
    it('goes to the model by its address, with the key in its header and nowhere else', async () => {
      await ask();
      const [call] = server.calls;
      expect(call).to.include({ method: 'POST', path: '/v1beta/models/gemini-x:generateContent' });
      expect(call?.headers['x-goog-api-key']).to.equal(KEY);
      expect(call?.headers['content-type']).to.equal('application/json');
      expect(JSON.stringify(call?.body)).not.to.include(KEY);
    });

    it('goes below the path of a base address that has one', async () => {
      model = await modelAt(`${server.url}/gateway/google`);
      await ask();
      expect(server.calls[0]?.path).to.equal('/gateway/google/v1beta/models/gemini-x:generateContent');
    });

    it('is not sent for a name that could lead to another address', async () => {
      for (const name of ['../files', 'a/b', 'models/../x', 'x?key=1', 'x#', 'a:b', '', ' ', '.', 'x\n', 'ö']) {
        expect((await failureOf(ask({ model: name }))).data).to.deep.equal({
          kind: 'model_unusable',
          retryable: false,
        });
      }
      expect(server.calls).to.have.length(0);
    });
  });

  describe('answer', () => {
    const texts: readonly [title: string, reply: GeminiReply, text: string][] = [
      ['leaves thoughts out', says([{ text: 'Hm.', thought: true }, { text: 'A draft' }]), 'A draft'],
      ['leaves parts of other kinds out', says([{ functionCall: { name: 'f' } }, { text: 'A draft' }]), 'A draft'],
      ['may come a byte at a time', saysSlowly('Ä drâft 🌳'), 'Ä drâft 🌳'],
      [
        'is the first of several candidates',
        sends({ candidates: ['One', 'Two'].map((text) => ({ content: { parts: [{ text }] }, finishReason: 'STOP' })) }),
        'One',
      ],
    ];
    for (const [title, reply, text] of texts) {
      it(title, async () => {
        server.answerBy([reply]);
        expect((await ask()).text).to.equal(text);
      });
    }

    const usages: readonly [title: string, usageMetadata: unknown, usage: Partial<ModelAnswer['usage']>][] = [
      ['is counted', { promptTokenCount: 11, candidatesTokenCount: 7 }, {}],
      [
        'counts thoughts as output',
        { promptTokenCount: 11, candidatesTokenCount: 7, thoughtsTokenCount: 30 },
        { outputTokens: 37, reasoningTokens: 30 },
      ],
      [
        'counts cached tokens as input',
        { promptTokenCount: 11, candidatesTokenCount: 7, cachedContentTokenCount: 4 },
        { cachedInputTokens: 4 },
      ],
      ['is unknown where none is reported', undefined, { inputTokens: null, outputTokens: null }],
      [
        'is unknown where it is no count',
        { promptTokenCount: '11', candidatesTokenCount: -7, thoughtsTokenCount: 0.5 },
        { inputTokens: null, outputTokens: null },
      ],
    ];
    for (const [title, usageMetadata, usage] of usages) {
      it(`has a usage that ${title}`, async () => {
        server.answerBy([sends({ candidates: [{ content: { parts: [{ text: 'x' }] } }], usageMetadata })]);
        expect((await ask()).usage).to.deep.equal({ ...REPORTED_USAGE, ...usage });
      });
    }
  });

  describe('unusable answer', () => {
    const rows: readonly [title: string, reply: GeminiReply, kind: string, retryable: boolean][] = [
      ['MAX_TOKENS without a text', says([], 'MAX_TOKENS'), 'max_tokens', false],
      ['SAFETY', says('', 'SAFETY'), 'safety', false],
      ['RECITATION', says('', 'RECITATION'), 'recitation', true],
      ['LANGUAGE', says('', 'LANGUAGE'), 'language', false],
      ['OTHER', says('', 'OTHER'), 'other', true],
      ['BLOCKLIST', says('', 'BLOCKLIST'), 'blocklist', false],
      ['PROHIBITED_CONTENT', says('', 'PROHIBITED_CONTENT'), 'prohibited_content', false],
      ['SPII', says('', 'SPII'), 'spii', false],
      ['MALFORMED_FUNCTION_CALL', says('', 'MALFORMED_FUNCTION_CALL'), 'malformed_function_call', true],
      [
        'a finish reason that is no text',
        sends({ candidates: [{ finishReason: { toString: 1 } }] }),
        'empty_answer',
        true,
      ],
      ['a blocked prompt', sends({ promptFeedback: { blockReason: 'SAFETY' } }), 'prompt_blocked', false],
      [
        'a blocked prompt beside no candidates',
        sends({ candidates: [], promptFeedback: { blockReason: 'OTHER' } }),
        'prompt_blocked',
        false,
      ],
      ['no candidates', sends({}), 'no_candidates', true],
      ['an empty list of candidates', sends({ candidates: [], promptFeedback: {} }), 'no_candidates', true],
      ['candidates that are none', sends({ candidates: [null] }), 'no_candidates', true],
      ['candidates that are no list', sends({ candidates: 'A draft' }), 'no_candidates', true],
      ['a list instead of an answer', sends([]), 'no_candidates', true],
      ['an error with status 200', sends({ error: { code: 500, message: 'No.' } }), 'server_error', true],
      ['no content', sends({ candidates: [{ finishReason: 'STOP' }] }), 'empty_answer', true],
      ['parts without text', says([{ functionCall: { name: 'f', args: {} } }, {}]), 'no_text', true],
      ['a text that is none', says([{ text: 7 }]), 'empty_answer', true],
      ['thoughts alone', says([{ text: 'Hm.', thought: true }]), 'thoughts_only', true],
    ];
    for (const [title, reply, kind, retryable] of rows) {
      it(`${title} is ${kind}, ${retryable ? 'asked' : 'not asked'} again`, async () => {
        const failure = await failureOn(reply);
        const { usage, ...named } = failure.data;
        expect(named).to.deep.equal({ kind, retryable });
        expect(usage ?? REPORTED_USAGE).to.deep.equal(REPORTED_USAGE);
        expect(failure.message).to.include('"gemini-x"');
      });
    }

    const unanswered: readonly [title: string, body: object][] = [
      ['a blocked prompt', { promptFeedback: { blockReason: 'SAFETY' } }],
      ['no candidates', { candidates: [] }],
      ['an error', { error: { code: 500, message: 'No.' } }],
    ];
    for (const [title, body] of unanswered) {
      it(`${title} counts the tokens that the provider reports of it`, async () => {
        const failure = await failureOn(sends({ ...body, usageMetadata: { promptTokenCount: 11 } }));
        expect(failure.data.usage).to.include({ inputTokens: 11, outputTokens: null });
      });
    }
  });

  describe('status', () => {
    it('400 for a wrong key is unauthorized and names the setting', async () => {
      const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }];
      const failure = await failureOn(refuses(400, { message: 'API key not valid.', details }));
      expect(failure.data).to.deep.equal({ kind: 'unauthorized', retryable: false });
      expect(failure.message).to.match(/answered 400 \(check GEMINI_API_KEY\): API key not valid\.$/);
    });

    it('with a body that quotes key and prompt at length shows neither, and not all of it', async () => {
      const message = `${KEY} said ${REQUEST.prompt} and ${'more '.repeat(10_000)}`;
      const failure = await failureOn(refuses(400, { message, details: [{ key: KEY }] }));
      expect(failure.message).to.include('… said … and more more');
    });
  });

  it('tells calls at the same time their own waits', async () => {
    server.answerBy((_call, index) => refuses(503, { headers: { 'Retry-After': String(index + 1) } }));
    const calls = Array.from({ length: 20 }, () => failureOf(ask()));
    const waits = (await Promise.all(calls)).map(({ data }) => (data.retryAfterMs ?? 0) / 1000);
    expect(waits.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 20 }, (_, index) => index + 1));
  });
});
