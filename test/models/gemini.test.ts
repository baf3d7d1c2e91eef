import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { ModelFailed } from '../../src/errors.js';
import { modelAt as providerModelAt } from '../support/provider-models.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { FakeGemini, GeminiReply } from '../support/fake-gemini.js';
import { fakeGemini, refuses, resets, says, saysSlowly, sends } from '../support/fake-gemini.js';
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

    it('holds system and prompt, and no setting that the node lacks', async () => {
      await ask();
      const { systemInstruction, contents, generationConfig } = server.calls[0]?.body ?? {};
      expect(systemInstruction?.parts).to.deep.equal([{ text: REQUEST.system }]);
      expect(contents).to.deep.equal([{ role: 'user', parts: [{ text: REQUEST.prompt }] }]);
      expect(generationConfig).to.deep.equal({});
    });

    it("holds the node's model, temperature and limit of tokens, zero too", async () => {
      await ask({ model: 'gemini-y', temperature: 0, maxOutputTokens: 99 });
      expect(server.calls[0]?.path).to.equal('/v1beta/models/gemini-y:generateContent');
      expect(server.calls[0]?.body.generationConfig).to.deep.equal({ temperature: 0, maxOutputTokens: 99 });
    });

    it("asks a critic for JSON by the schema of a critic's answer", async () => {
      await ask({ answer: 'critique' });
      const written = JSON.parse(
        readFileSync(new URL('../../../schemas/critic-answer.json', import.meta.url), 'utf8'),
      ) as { type: string; required: string[]; properties: Record<string, { type: string; enum?: string[] }> };
      const { responseMimeType, responseSchema } = server.calls[0]?.body.generationConfig ?? {};
      expect(responseMimeType).to.equal('application/json');
      expect(responseSchema).to.deep.include({ type: written.type, required: written.required });
      for (const [name, { type, enum: choices }] of Object.entries(written.properties)) {
        expect(responseSchema).to.have.nested.property(`properties.${name}.type`, type);
        if (choices !== undefined)
          expect(responseSchema).to.have.deep.nested.property(`properties.${name}.enum`, choices);
      }
    });

    it('asks a judge for JSON by a schema of the letters shown', async () => {
      const answers = [
        { letter: 'A', text: 'Oaks' },
        { letter: 'B', text: 'Elms' },
      ];
      await ask({ answer: 'analysis', promptInput: { ...REQUEST.promptInput, answers } });
      const { responseSchema } = server.calls[0]?.body.generationConfig ?? {};
      expect(responseSchema)
        .to.have.deep.nested.property('properties.contradictions.items.properties.stances.items.properties.response')
        .that.deep.includes({ type: 'string', enum: ['A', 'B'] });
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

    it('is made once, whatever comes of it', async () => {
      for (const reply of [refuses(503), refuses(429), resets, says('', 'OTHER')]) await failureOn(reply);
      expect(server.calls).to.have.length(4);
    });
  });

  describe('answer', () => {
    const texts: readonly [title: string, reply: GeminiReply, text: string][] = [
      ['is the text of its one part', says('A draft'), 'A draft'],
      ['is joined of several parts', says([{ text: 'A ' }, { text: 'draft' }, { text: '' }]), 'A draft'],
      ['leaves thoughts out', says([{ text: 'Hm.', thought: true }, { text: 'A draft' }]), 'A draft'],
      ['leaves parts of other kinds out', says([{ functionCall: { name: 'f' } }, { text: 'A draft' }]), 'A draft'],
      ['may come a byte at a time', saysSlowly('Ä drâft 🌳'), 'Ä drâft 🌳'],
      ['may lack a finish reason', says('A draft', null), 'A draft'],
      [
        'is well-formed where a lone surrogate was sent',
        sends('{"candidates":[{"content":{"parts":[{"text":"a\\ud800b"}]}}]}'),
        'a\ufffdb',
      ],
      [
        'is the first of several candidates',
        sends({ candidates: ['One', 'Two'].map((text) => ({ content: { parts: [{ text }] }, finishReason: 'STOP' })) }),
        'One',
      ],
      ['may be large', says('x'.repeat(2_000_000)), 'x'.repeat(2_000_000)],
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
      ['MAX_TOKENS', says('Half a', 'MAX_TOKENS'), 'max_tokens', false],
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
      ['an empty text', says(''), 'empty_answer', true],
      ['a blank text', says(' \n\t'), 'empty_answer', true],
      ['no parts', says([]), 'empty_answer', true],
      ['no content', sends({ candidates: [{ finishReason: 'STOP' }] }), 'empty_answer', true],
      ['parts without text', says([{ functionCall: { name: 'f', args: {} } }, {}]), 'no_text', true],
      ['a text that is none', says([{ text: 7 }]), 'empty_answer', true],
      ['thoughts alone', says([{ text: 'Hm.', thought: true }]), 'thoughts_only', true],
      ['an empty body', sends(''), 'unreadable_answer', true],
      ['a body cut off', sends('{"candidates": ['), 'unreadable_answer', true],
      ['a page', sends('<!doctype html><p>Hello'), 'unreadable_answer', true],
      ['null', sends('null'), 'unreadable_answer', true],
      ['a number', sends('7'), 'unreadable_answer', true],
      ['a text', sends('"A draft"'), 'unreadable_answer', true],
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

  it('counts what an unusable answer has cost', async () => {
    expect((await failureOn(says('Half a', 'MAX_TOKENS'))).data.usage).to.deep.equal(REPORTED_USAGE);
    expect((await failureOn(sends({ candidates: [] }))).data.usage).to.equal(undefined);
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

    it('of an endless answer is given up, and little of it kept', async () => {
      const before = process.memoryUsage().rss;
      const failure = await failureOn((response) => {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        const chunk = Buffer.alloc(256 * 1024, ' ');
        const write = (): void => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on('drain', write);
        write();
      });
      expect(failure.data).to.deep.equal({ kind: 'answer_too_large', retryable: false });
      expect(process.memoryUsage().rss - before).to.be.lessThan(500e6);
    });
  });

  describe('wait asked for', () => {
    const RETRY_INFO = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.074824224s' };
    const rows: readonly [
      title: string,
      retryAfter: string | null,
      details: readonly object[],
      waitMs: number | undefined,
    ][] = [
      ['is absent', null, [], undefined],
      ['is a number of seconds', '7', [], 7_000],
      ['is no time at all', '0', [], 0],
      ['is a date', 'Fri, 02 Jan 2026 03:05:05 GMT', [], 60_000],
      ['is a date in the old form', 'Friday, 02-Jan-26 03:05:05 GMT', [], 60_000],
      ['is a date that has passed', 'Fri, 02 Jan 2026 03:03:05 GMT', [], 0],
      ['is unreadable', 'soon', [], undefined],
      ['is below zero', '-5', [], undefined],
      ['is a fraction of seconds', '1.5', [], 1_500],
      ['is beyond all numbers', '9'.repeat(400), [], undefined],
      ["stands in the error's details", null, [{}, RETRY_INFO], 34_075],
      ['stands in both: the longer one', '7', [RETRY_INFO], 34_075],
      ['stands in both: the longer one is the header', '70', [RETRY_INFO], 70_000],
      ['is unreadable in the details', null, [{ ...RETRY_INFO, retryDelay: 'soon' }], undefined],
      ['is of another type in the details', null, [{ '@type': 'x', retryDelay: '3s' }], undefined],
    ];
    for (const [title, retryAfter, details, waitMs] of rows) {
      it(title, async () => {
        const headers = retryAfter === null ? {} : { 'Retry-After': retryAfter };
        const { data } = await failureOn(refuses(429, { headers, details }));
        expect(data).to.include({ kind: 'rate_limited', retryable: true });
        expect(data.retryAfterMs).to.equal(waitMs);
      });
    }

    it('differs between calls at the same time', async () => {
      server.answerBy((_call, index) => refuses(503, { headers: { 'Retry-After': String(index + 1) } }));
      const calls = Array.from({ length: 20 }, () => failureOf(ask()));
      const waits = (await Promise.all(calls)).map(({ data }) => (data.retryAfterMs ?? 0) / 1000);
      expect(waits.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 20 }, (_, index) => index + 1));
    });
  });
});
