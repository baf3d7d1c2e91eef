import { expect } from 'chai';
import { ModelFailed } from '../../src/errors.js';
import { modelAt as providerModelAt } from '../support/provider-models.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { FakeGemini, GeminiReply } from '../support/fake-gemini.js';
import { fakeGemini, refuses, says, streams } from '../support/fake-gemini.js';
import { modelFailureOf, REQUEST, REPORTED_USAGE, TOOLS } from '../support/model-requests.js';
import { rejectionOf } from '../support/rejection.js';

const CALLS = [
  { text: 'Hm.', thought: true },
  { functionCall: { name: 'look', args: { query: 'oaks' }, id: 'f1' }, thoughtSignature: 'c2lnbmVk' },
  { functionCall: { name: 'look', args: { query: 'elms' } } },
];
const USAGE = { promptTokenCount: 11, candidatesTokenCount: 7 };

describe('Gemini with tools', () => {
  let server: FakeGemini;
  let model: LanguageModel;
  const heard: string[] = [];
  const onToken = (text: string): void => void heard.push(text);

  const ask = (request: Partial<ModelRequest> = {}): Promise<ModelAnswer> =>
    model.ask({ ...REQUEST, ...request }, new AbortController());
  const failureOn = (reply: GeminiReply, request: Partial<ModelRequest> = {}): Promise<ModelFailed> => {
    server.answerBy([reply]);
    return modelFailureOf(ask(request));
  };

  beforeEach(async () => {
    heard.splice(0);
    server = await fakeGemini([says('A draft')]);
    model = await providerModelAt('gemini', {
      apiKey: 'k',
      baseUrl: `${server.url}/v1beta`,
      model: 'gemini-x',
      now: '2026-01-02T03:04:05.000Z',
    });
  });
  afterEach(() => server.stop());

  it('is offered functions and calls several at once', async () => {
    server.answerBy([says(CALLS)]);
    const { text, calls = [] } = await ask({ tools: TOOLS });
    expect(text).to.equal('');
    expect(calls.map(({ name, argumentsJson }) => [name, argumentsJson])).to.deep.equal([
      ['look', '{"query":"oaks"}'],
      ['look', '{"query":"elms"}'],
    ]);
    expect(new Set(calls.map(({ id }) => id))).to.have.property('size', 2);
    expect(server.calls[0]?.body.tools).to.deep.equal([
      {
        functionDeclarations: [
          {
            name: 'look',
            description: 'Looks.',
            parameters: {
              type: 'object',
              properties: {
                query: { type: 'string', description: 'What.' },
                top_k: { type: 'integer', description: 'How many.' },
              },
              required: ['query'],
            },
          },
        ],
      },
    ]);
  });

  it('sees its calls again with their thought signatures, and every result', async () => {
    server.answerBy([says(CALLS), says('Done')]);
    const { text, calls = [], turn } = await ask({ tools: TOOLS });
    const exchanges = calls.map((call, index) => ({ call, result: `result ${index}` }));
    expect((await ask({ tools: TOOLS, rounds: [{ text, exchanges, turn }] })).text).to.equal('Done');
    const [prompt, called, answered] = server.calls[1]?.body.contents ?? [];
    expect(prompt?.role).to.equal('user');
    expect(called).to.containSubset({ role: 'model', parts: CALLS });
    expect(answered).to.containSubset({
      role: 'user',
      parts: [
        { functionResponse: { name: 'look', response: { content: 'result 0' }, id: 'f1' } },
        { functionResponse: { name: 'look', response: { content: 'result 1' } } },
      ],
    });
  });

  it('is asked for a critique by its schema beside tools', async () => {
    await ask({ tools: TOOLS, answer: 'critique' });
    expect(server.calls[0]?.body.generationConfig.responseMimeType).to.equal('application/json');
    expect(server.calls[0]?.body.tools).to.have.length(1);
  });

  it('that refuses a schema beside tools gets only the prompt, which is remembered per model', async () => {
    server.answerBy(({ body }) =>
      body.tools !== undefined && body.generationConfig.responseSchema !== undefined
        ? refuses(400, { message: "Function calling with a response mime type: 'application/json' is unsupported" })
        : says('{"score": "8", "feedback": ""}'),
    );
    for (const [model, tools] of [
      ['old', TOOLS],
      ['old', TOOLS],
      ['old', []],
      ['other', TOOLS],
    ] as const) {
      await ask({ model, tools, answer: 'critique' });
    }
    const asked = server.calls.map(({ path, body }) => [
      /models\/(\w+):/.exec(path)?.[1],
      body.tools?.length ?? 0,
      body.generationConfig.responseMimeType ?? null,
    ]);
    const json = 'application/json';
    expect(asked).to.deep.equal([
      ['old', 1, json],
      ['old', 1, null],
      ['old', 1, null],
      ['old', 0, json],
      ['other', 1, json],
      ['other', 1, null],
    ]);
  });

  it('quotes no result in a failure', async () => {
    const call = { id: 'a', name: 'look', argumentsJson: '{}', echo: CALLS[2] };
    const rounds = [{ text: '', exchanges: [{ call, result: 'a secret result' }] }];
    const failure = await failureOn(refuses(400, { message: 'Bad: a secret result' }), { tools: TOOLS, rounds });
    expect(failure.message).to.match(/: Bad: …$/);
  });

  describe('that streams', () => {
    const piece = (parts: readonly object[], more: object = {}): object => ({
      candidates: [{ content: { role: 'model', parts }, ...more }],
    });

    it('is heard as it comes, thoughts left out, and is the same answer', async () => {
      server.answerBy([
        streams([
          piece([{ text: 'Hm.', thought: true }, { text: 'A ' }]),
          piece([{ text: 'dr' }, { text: 'äft' }]),
          { ...piece([{ text: '' }], { finishReason: 'STOP' }), usageMetadata: USAGE },
        ]),
      ]);
      expect(await ask({ onToken })).to.deep.equal({ text: 'A dräft', usage: REPORTED_USAGE });
      expect(heard.join('')).to.equal('A dräft');
      expect(server.calls[0]?.path).to.equal('/v1beta/models/gemini-x:streamGenerateContent?alt=sse');
    });

    it('keeps all calls of a chunk and their signatures', async () => {
      server.answerBy([streams([piece(CALLS), piece([], { finishReason: 'STOP' })])]);
      const { text, calls = [], turn } = await ask({ tools: TOOLS, onToken });
      server.answerBy([says('Done')]);
      const exchanges = calls.map((call) => ({ call, result: '' }));
      await ask({ tools: TOOLS, rounds: [{ text, exchanges, turn }] });
      const called = server.calls[1]?.body.contents[1]?.parts.filter(({ functionCall }) => functionCall !== undefined);
      expect(called).to.containSubset(CALLS.slice(1));
    });

    it('is read to its end though its last event lacks the empty line', async () => {
      server.answerBy([
        (response) => {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          response.write(`data: ${JSON.stringify(piece([{ text: 'A ' }]))}\r\n\r\n`);
          response.end(`data: ${JSON.stringify(piece([{ text: 'draft' }], { finishReason: 'STOP' }))}`);
        },
      ]);
      expect((await ask({ onToken })).text).to.equal('A draft');
      expect(heard).to.deep.equal(['A ', 'draft']);
      expect(server.calls).to.have.length(1);
    });

    it('sends the same request as one that does not, and fails with the same message', async () => {
      server.answerBy([refuses(429, { message: 'Slow down', headers: { 'Retry-After': '7' }, details: [{ a: 1 }] })]);
      const tools = { tools: TOOLS };
      const failures = await Promise.all([ask({ ...tools, onToken }), ask(tools)].map((each) => rejectionOf(each)));
      const [streamed, plain] = failures.map((each) =>
        each instanceof ModelFailed ? [each.message, each.data] : each,
      );
      expect(streamed).to.deep.equal(plain);
      const [one, other] = server.calls;
      expect({ safetySettings: [], ...one?.body }).to.deep.equal({ safetySettings: [], ...other?.body });
      for (const { headers } of server.calls) expect(headers['x-goog-api-key']).to.equal('k');
    });

    const rows: readonly [title: string, reply: GeminiReply, kind: string][] = [
      ['is empty, asked for plainly too', streams([]), 'unreadable_answer'],
      ['is blocked', streams([{ promptFeedback: { blockReason: 'SAFETY' } }]), 'prompt_blocked'],
    ];
    for (const [title, reply, kind] of rows) {
      it(`and ${title} is ${kind}`, async () => {
        expect((await failureOn(reply, { onToken })).data.kind).to.equal(kind);
      });
    }

    for (const [title, reply, calls] of [
      ['has no such address is asked for plainly from then on', refuses(404), 3],
      ['answers whole is read as it answers', says('A draft'), 2],
      ['answers nothing is asked for plainly each time', streams([]), 4],
    ] as const) {
      it(`from a server that ${title}`, async () => {
        server.answerBy(({ path }) => (path.includes('streamGenerateContent') ? reply : says('A draft')));
        for (let time = 0; time < 2; time += 1) expect((await ask({ onToken })).text).to.equal('A draft');
        expect(heard).to.deep.equal(['A draft', 'A draft']);
        expect(server.calls).to.have.length(calls);
      });
    }
  });
});
