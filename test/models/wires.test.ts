/** Each wire with each habit of a server. The tests of one wire hold what is peculiar to it. */
import { expect } from 'chai';
import type { ModelFailureKind } from '../../src/errors.js';
import { answerSchema } from '../../src/models/answer-schema.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { ProviderApi } from '../../src/models/wires/wires.js';
import * as anthropic from '../support/fake-anthropic.js';
import * as gemini from '../support/fake-gemini.js';
import * as openai from '../support/fake-openai.js';
import type { Call, FakeServer, Reply } from '../support/fake-server.js';
import {
  endsMidBody,
  fakeServer,
  hangs,
  hangsMidBody,
  resets,
  resetsMidBody,
  sends,
  streams,
} from '../support/fake-server.js';
import { modelFailureOf, REPORTED_USAGE, REQUEST } from '../support/model-requests.js';
import { modelAt } from '../support/provider-models.js';
import { rejectionOf } from '../support/rejection.js';

const KEY = 'sk-secret-key-of-this-test';
const SETTINGS = { model: 'model-y', temperature: 0, maxOutputTokens: 99 };

/** What any wire may send, its tools as Anthropic takes them. */
type Received = Call<
  Omit<openai.OpenAiRequest, 'tools'> & anthropic.AnthropicRequest & Omit<gemini.GeminiRequest, 'tools'>
>;

/** How a server of one wire says things. */
interface Dialect {
  /** The path of its API. */
  readonly base: string;
  /** The header that holds the key, and its value. */
  readonly key: readonly [name: string, value: string];
  readonly says: (content: string | readonly object[], finish?: string | null) => Reply;
  readonly saysInPieces: (pieces: readonly string[]) => Reply;
  readonly refuses: (status: number, message: string, headers: Readonly<Record<string, string>>) => Reply;
  /** The finish reason of an answer that is cut off at its limit of tokens. */
  readonly limit: string;
  /** The events that the server sends before it fails. */
  readonly begun: readonly object[];
  /** An error in an answer with status 200. */
  readonly error: object;
  /** What a call holds of REQUEST and SETTINGS. */
  readonly sent: (call: Received) => unknown;
  /** The schema of the answer that a call asks for. */
  readonly schema: (call: Received) => unknown;
}

const DIALECTS: Readonly<Record<ProviderApi, Dialect>> = {
  openai: {
    base: '/v1',
    key: ['authorization', `Bearer ${KEY}`],
    says: openai.says,
    saysInPieces: openai.saysInPieces,
    refuses: (status, message, headers) => openai.refuses(status, { message, headers }),
    limit: 'length',
    begun: [{ choices: [{ delta: { content: 'Half a' } }] }],
    error: { error: { message: `No, ${KEY}.` } },
    sent: ({ body: { messages, model, temperature, max_tokens: maxOutputTokens } }) => ({
      ...{ system: messages[0]?.content, prompt: messages[1]?.content, model, temperature, maxOutputTokens },
    }),
    schema: ({ body }) => body.response_format?.json_schema?.schema,
  },
  anthropic: {
    base: '/v1',
    key: ['x-api-key', KEY],
    says: anthropic.says,
    saysInPieces: anthropic.saysInPieces,
    refuses: (status, message, headers) => anthropic.refuses(status, 'refused', message, headers),
    limit: 'max_tokens',
    begun: [
      { type: 'message_start', message: { usage: { input_tokens: 11 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Half a' } },
    ],
    error: { type: 'error', error: { type: 'api_error', message: `No, ${KEY}.` } },
    sent: ({ body: { system, messages, model, temperature, max_tokens: maxOutputTokens } }) => ({
      ...{ system: system?.[0]?.text, prompt: messages[0]?.content[0]?.['text'], model, temperature, maxOutputTokens },
    }),
    schema: ({ body }) => body.tools?.find(({ name }) => name === 'json')?.input_schema,
  },
  gemini: {
    base: '/v1beta',
    key: ['x-goog-api-key', KEY],
    says: gemini.says,
    saysInPieces: gemini.saysInPieces,
    refuses: (status, message, headers) => gemini.refuses(status, { message, headers }),
    limit: 'MAX_TOKENS',
    begun: [{ candidates: [{ content: { parts: [{ text: 'Half a' }] } }] }],
    error: { error: { message: `No, ${KEY}.` } },
    sent: ({ path, body: { systemInstruction, contents, generationConfig } }) => ({
      system: systemInstruction?.parts[0]?.text,
      prompt: contents[0]?.parts[0]?.text,
      model: /models\/(.*):/.exec(path)?.[1],
      ...generationConfig,
    }),
    schema: ({ body }) => body.generationConfig.responseSchema,
  },
};

const TEXTS = ['A ', 'draft'].map((text) => ({ type: 'text', text }));
const LARGE = 'x'.repeat(2_000_000);

const ANSWERS: readonly (readonly [title: string, reply: (dialect: Dialect) => Reply, text: string])[] = [
  ['in one piece', ({ says }) => says('A draft'), 'A draft'],
  ['in several parts', ({ says }) => says(TEXTS), 'A draft'],
  ['as a stream', ({ saysInPieces }) => saysInPieces(['A ', 'drä', 'ft']), 'A dräft'],
  ['without a finish reason', ({ says }) => says('A draft', null), 'A draft'],
  ['with a lone surrogate, as well-formed text', ({ says }) => says('a\ud800b'), 'a\ufffdb'],
  ['of 2 MB', ({ says }) => says(LARGE), LARGE],
];

const page =
  (status: number, text: string): Reply =>
  (response) =>
    response.writeHead(status).end(text);
const redirects: Reply = (response) => response.writeHead(307, { Location: '/elsewhere' }).end();
const neverEnds: Reply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  const write = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(256 * 1024, ' ')));
  };
  response.on('drain', write);
  write();
};

type Fault = readonly [
  habit: string,
  reply: (dialect: Dialect) => Reply,
  kind: ModelFailureKind,
  isRepeatable: boolean,
];

const FAULTS: readonly Fault[] = [
  ['an answer cut off at its limit', ({ says, limit }) => says('Half a', limit), 'max_tokens', false],
  ['an empty text', ({ says }) => says(''), 'empty_answer', true],
  ['a blank text', ({ says }) => says(' \n\t'), 'empty_answer', true],
  ['an answer without parts', ({ says }) => says([]), 'empty_answer', true],
  ['an empty body', () => sends(''), 'unreadable_answer', true],
  ['a body that is cut off', () => sends('{"choices": ['), 'unreadable_answer', true],
  ['a page', () => page(200, '<!doctype html><p>Hello'), 'unreadable_answer', true],
  ['null', () => sends('null'), 'unreadable_answer', true],
  ['a number', () => sends('7'), 'unreadable_answer', true],
  ['a string', () => sends('"A draft"'), 'unreadable_answer', true],
  ['a body of 17 MiB', () => sends('"'.padEnd(17 * 1024 * 1024, 'x')), 'answer_too_large', false],
  ['a body without an end', () => neverEnds, 'answer_too_large', false],
  ['a stream that breaks off', ({ begun }) => streams(begun), 'unreadable_answer', true],
  ['a stream that is no JSON', ({ begun }) => streams([...begun, '{"choices": [']), 'unreadable_answer', true],
  ['a stream without an event', () => streams([]), 'unreadable_answer', true],
  ['a stream of 17 MiB', () => streams(['x'.repeat(17 * 1024 * 1024)]), 'answer_too_large', false],
  [
    'a stream that is reset',
    ({ begun }) =>
      (response) => {
        streams(begun, { ends: false })(response);
        response.write('\n', () => response.socket?.resetAndDestroy());
      },
    'connection_lost',
    true,
  ],
  ['a connection reset before the answer', () => resets, 'connection_lost', true],
  ['a connection reset in the answer', () => resetsMidBody, 'connection_lost', true],
  ['a connection ended in the answer', () => endsMidBody, 'connection_lost', true],
  ['a redirect', () => redirects, 'redirected', false],
  ...(
    [
      [400, 'bad_request', false],
      [401, 'unauthorized', false],
      [403, 'forbidden', false],
      [404, 'model_unknown', false],
      [408, 'request_timeout', true],
      [409, 'http_error', false],
      [418, 'http_error', false],
      [422, 'http_error', false],
      [429, 'rate_limited', true],
      [500, 'server_error', true],
      [501, 'not_implemented', false],
      [502, 'bad_gateway', true],
      [503, 'unavailable', true],
      [504, 'gateway_timeout', true],
      [522, 'bad_gateway', true],
      [524, 'gateway_timeout', true],
      [529, 'overloaded', true],
    ] as const
  ).map(([status, kind, isRepeatable]): Fault => [
    `status ${status}`,
    ({ refuses }) => refuses(status, `The server says\nno to ${KEY}.`, {}),
    kind,
    isRepeatable,
  ]),
];

/** Failures of a stream that the whole answer would have too, so that the wire does not ask for it. */
const SHARED: ReadonlySet<ModelFailureKind> = new Set(['max_tokens', 'unauthorized', 'rate_limited'] as const);

for (const [api, dialect] of Object.entries(DIALECTS) as readonly (readonly [ProviderApi, Dialect])[]) {
  describe(`The wire ${api}`, () => {
    let server: FakeServer<Received['body']>;
    let model: LanguageModel;
    let heard: string;
    const onToken = (text: string): void => void (heard += text);
    const onStart = (): void => void (heard = '');
    const at = (apiKey: string | null): Promise<LanguageModel> =>
      modelAt(api, { baseUrl: `${server.url}${dialect.base}`, apiKey, model: 'model-x' });
    const ask = (request: Partial<ModelRequest>, signal = new AbortController().signal): Promise<ModelAnswer> =>
      model.ask({ ...REQUEST, ...request }, { signal });

    beforeEach(async () => {
      heard = '';
      server = await fakeServer<Received['body']>([dialect.says('A draft')]);
      model = await at(KEY);
    });
    afterEach(() => server.stop());

    it('sends model, prompt, temperature and limit of tokens, and the key in its header alone', async () => {
      await ask(SETTINGS);
      const [call] = server.calls;
      const { system, prompt } = REQUEST;
      expect(call && dialect.sent(call)).to.deep.equal({ ...SETTINGS, system, prompt });
      const [name, value] = dialect.key;
      expect(call?.headers[name]).to.equal(value);
      expect(JSON.stringify({ ...call, headers: { ...call?.headers, [name]: '' } })).not.to.include(KEY);
    });

    it('sends no key where none is set, and no setting that the request lacks', async () => {
      model = await at(null);
      await ask({});
      const [call] = server.calls;
      expect(call?.headers).not.to.have.any.keys('authorization', 'x-api-key', 'x-goog-api-key');
      expect(JSON.stringify(call?.body)).not.to.include('temperature');
    });

    it('asks for JSON by the schema of the answer', async () => {
      const answers = ['A', 'B'].map((letter) => ({ letter, text: 'Oaks' }));
      const promptInput = { ...REQUEST.promptInput, answers };
      for (const answer of ['critique', 'ranking', 'analysis'] as const) {
        await ask({ answer, promptInput });
        const call = server.calls.at(-1);
        const { properties, required } = answerSchema({ ...REQUEST, answer, promptInput }) ?? {};
        const sent = call && dialect.schema(call);
        expect(sent).to.have.deep.property('required', required);
        expect(sent)
          .to.have.property('properties')
          .with.all.keys(properties ?? {});
        if (answer !== 'critique') expect(JSON.stringify(sent)).to.include('"enum":["A","B"]');
      }
    });

    for (const [title, reply, text] of ANSWERS) {
      it(`reads an answer ${title}, and pays once`, async () => {
        server.answerBy([reply(dialect)]);
        for (const streamed of [{}, { onToken, onStart }])
          expect(await ask(streamed)).to.deep.equal({ text, usage: REPORTED_USAGE });
        expect(heard.toWellFormed()).to.equal(text);
        expect(server.calls).to.have.length(2);
      });
    }

    for (const [habit, reply, kind, isRepeatable] of FAULTS) {
      it(`calls ${habit} ${kind}, which may ${isRepeatable ? '' : 'not '}be asked again`, async () => {
        server.answerBy([reply(dialect)]);
        const whole = await modelFailureOf(ask({}), KEY);
        expect(server.calls).to.have.length(1);
        const streamed = await modelFailureOf(ask({ onToken, onStart }), KEY);
        expect(server.calls).to.have.length(SHARED.has(kind) ? 2 : 3);
        for (const { data, message } of [whole, streamed]) {
          expect(data).to.include({ kind, retryable: isRepeatable });
          expect(message).to.include('"model-x"');
          if (kind === 'max_tokens' || kind === 'empty_answer') expect(data.usage).to.deep.equal(REPORTED_USAGE);
          if (habit.startsWith('status')) expect(message).to.match(/answered \d+.*: The server says no to …\.$/);
        }
      });
    }

    it('quotes an error with status 200, whole and in a stream', async () => {
      for (const reply of [sends(dialect.error), streams([...dialect.begun, dialect.error])]) {
        server.answerBy([reply]);
        for (const streamed of [{}, { onToken, onStart }]) {
          const { data, message } = await modelFailureOf(ask(streamed), KEY);
          expect(data).to.include({ kind: 'error_answer', retryable: true });
          expect(message).to.include('it holds an error: No, ….');
        }
      }
    });

    it('waits as long as a server asks for', async () => {
      server.answerBy([dialect.refuses(429, 'Slow down', { 'Retry-After': '7' })]);
      expect((await modelFailureOf(ask({}))).data.retryAfterMs).to.equal(7_000);
    });

    for (const [title, reply] of [
      ['before the answer', hangs],
      ['in the answer', hangsMidBody],
      ['in a stream', streams(dialect.begun, { ends: false })],
    ] as const) {
      it(`ends an aborted request on the server too, ${title}`, async () => {
        server.answerBy([reply]);
        const abort = new AbortController();
        const call = rejectionOf(ask({ onToken, onStart }, abort.signal));
        await server.until(() => server.calls.length === 1);
        abort.abort(new Error('Enough'));
        expect(await call).to.have.nested.property('data.kind', 'aborted');
        await server.until(() => server.abandoned() === 1);
      });
    }

    it('sends nothing for a request that is aborted before', async () => {
      expect(await rejectionOf(ask({}, AbortSignal.abort()))).to.have.nested.property('data.kind', 'aborted');
      expect(server.calls).to.have.length(0);
    });
  });
}
