import { expect } from 'chai';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import type { ModelFailed } from '../../src/errors.js';
import { modelAt as providerModelAt } from '../support/provider-models.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { answers, calls, fakeOpenAi, refuses, says, saysInPieces } from '../support/fake-openai.js';
import type { Reply } from '../support/fake-server.js';
import { answersStatus, sends, streams } from '../support/fake-server.js';
import { modelFailureOf, REQUEST, REPORTED_USAGE, TOOLS } from '../support/model-requests.js';

const KEY = 'sk-secret-key-of-this-test';
const NOW = '2026-01-02T03:04:05.000Z';

describe('An OpenAI-compatible server', () => {
  let server: FakeOpenAi;
  let model: LanguageModel;

  const modelAt = (baseUrl: string, apiKey: string | null = KEY): Promise<LanguageModel> =>
    providerModelAt('openai', { apiKey, baseUrl, model: 'model-x', now: NOW });
  const ask = (request: Partial<ModelRequest> = {}, signal = new AbortController().signal): Promise<ModelAnswer> =>
    model.ask({ ...REQUEST, ...request }, { signal });
  const failureOf = (call: Promise<unknown>): Promise<ModelFailed> => modelFailureOf(call, KEY);
  const failureOn = (reply: Reply, request: Partial<ModelRequest> = {}): Promise<ModelFailed> => {
    server.answerBy([reply]);
    return failureOf(ask(request));
  };

  beforeEach(async () => {
    server = await fakeOpenAi([says('A draft')]);
    model = await modelAt(`${server.url}/v1`);
  });
  afterEach(() => server.stop());

  describe('request', () => {
    it('goes to chat completions with the key as a bearer token and nowhere else', async () => {
      expect(await ask()).to.deep.equal({ text: 'A draft', usage: REPORTED_USAGE });
      const [call] = server.calls;
      expect(call).to.include({ method: 'POST', path: '/v1/chat/completions' });
      expect(call?.headers.authorization).to.equal(`Bearer ${KEY}`);
      expect(JSON.stringify(call?.body)).not.to.include(KEY);
      expect(call?.body).to.deep.equal({
        model: 'model-x',
        messages: [
          { role: 'system', content: REQUEST.system },
          { role: 'user', content: REQUEST.prompt },
        ],
      });
    });

    it('renames the token limit for servers that want it so, and remembers', async () => {
      server.answerBy(({ body }) =>
        body.max_tokens === undefined
          ? says('A draft')
          : refuses(400, { message: "Use 'max_completion_tokens' instead of 'max_tokens'." }),
      );
      for (let time = 0; time < 2; time += 1) await ask({ maxOutputTokens: 99 });
      expect(server.calls.map(({ body }) => body.max_completion_tokens)).to.deep.equal([undefined, 99, 99]);
    });

    for (const [accepted, formats] of [
      ['json_object', ['json_schema', 'json_object', 'json_object']],
      [undefined, ['json_schema', 'json_object', undefined, undefined]],
    ] as const) {
      it(`asks for JSON in plainer words down to ${accepted ?? 'the prompt alone'}, and remembers`, async () => {
        server.answerBy(({ body }) =>
          body.response_format?.type === accepted ? says('{"score": 8, "feedback": ""}') : answersStatus(400, 'what?'),
        );
        for (let time = 0; time < 2; time += 1) await ask({ answer: 'critique' });
        expect(server.calls.map(({ body }) => body.response_format?.type)).to.deep.equal(formats);
      });
    }

    it('that is refused in any words fails by the refusal, and nothing is remembered', async () => {
      expect((await failureOn(refuses(422), { answer: 'critique' })).data.kind).to.equal('http_error');
      expect(server.calls).to.have.length(3);
      await failureOf(ask({ answer: 'critique' }));
      expect(server.calls[3]?.body.response_format?.type).to.equal('json_schema');
    });
  });

  describe('tools', () => {
    it('are offered, called and answered', async () => {
      server.answerBy([calls(['look', { query: 'oaks' }], ['look', '{"query": oa']), says('Done')]);
      const first = await ask({ tools: TOOLS });
      expect(server.calls[0]?.body.tools).to.deep.equal([{ type: 'function', function: TOOLS[0] }]);
      const asked = first.calls ?? [];
      expect(asked.map(({ id, name, argumentsJson }) => [id, name, argumentsJson])).to.deep.equal([
        ['id_0', 'look', '{"query":"oaks"}'],
        ['id_1', 'look', '{"query": oa'],
      ]);
      const exchanges = asked.map((call, index) => ({ call, result: `result ${index}` }));
      const second = await ask({ tools: TOOLS, rounds: [{ text: first.text, exchanges }] });
      expect(second).to.deep.equal({ text: 'Done', usage: REPORTED_USAGE });
      const [, , assistant, ...results] = server.calls[1]?.body.messages ?? [];
      expect(assistant?.content).to.equal(null);
      expect(assistant?.tool_calls?.map((call) => call.function.arguments)).to.deep.equal(['{"query":"oaks"}', '{}']);
      expect(results).to.deep.equal([
        { role: 'tool', tool_call_id: 'id_0', content: 'result 0' },
        { role: 'tool', tool_call_id: 'id_1', content: 'result 1' },
      ]);
    });

    it('stand beside the schema of a critic where the server takes both', async () => {
      await ask({ tools: TOOLS, answer: 'critique' });
      expect(server.calls[0]?.body.response_format?.type).to.equal('json_schema');
      expect(server.calls[0]?.body.tools).to.have.length(1);
    });

    it('go without a schema once the server refuses both together; without tools the schema stays', async () => {
      server.answerBy(({ body }) =>
        body.tools !== undefined && body.response_format !== undefined
          ? refuses(400, { message: 'Cannot use custom grammar constraints with tools.' })
          : says('{"score": "8", "feedback": ""}'),
      );
      for (const tools of [TOOLS, TOOLS, []]) await ask({ tools, answer: 'critique' });
      const asked = server.calls.map(({ body }) => [body.tools?.length ?? 0, body.response_format?.type]);
      expect(asked).to.deep.equal([
        [1, 'json_schema'],
        [1, undefined],
        [1, undefined],
        [0, 'json_schema'],
      ]);
    });

    it('may be called with object arguments, without ids, beside a text, and with extra content', async () => {
      const called = {
        function: { name: 'look', arguments: { query: 'oaks' } },
        extra_content: { google: { thought_signature: 'x' } },
      };
      server.answerBy([answers({ content: 'Let me see.', tool_calls: [called, { ...called, id: '' }] }, 'stop')]);
      const { text, calls: asked = [], turn } = await ask({ tools: TOOLS });
      expect(text).to.equal('Let me see.');
      expect(asked.map(({ id, argumentsJson }) => [id, argumentsJson])).to.deep.equal([
        ['call_0_0', '{"query":"oaks"}'],
        ['call_0_1', '{"query":"oaks"}'],
      ]);
      await ask({ tools: TOOLS, rounds: [{ text, exchanges: asked.map((call) => ({ call, result: '' })), turn }] });
      const assistant = server.calls[1]?.body.messages[2];
      expect(assistant?.content).to.equal('Let me see.');
      expect(assistant?.tool_calls?.[0]?.extra_content).to.deep.equal({ google: { thought_signature: 'x' } });
    });

    it('called by a name no server takes back are named so that it does', async () => {
      const call = { id: 'a', name: 'rm -rf /', argumentsJson: '[]' };
      await ask({ tools: TOOLS, rounds: [{ text: '', exchanges: [{ call, result: '' }] }] });
      const [again] = server.calls[0]?.body.messages[2]?.tool_calls ?? [];
      expect(again?.function).to.deep.equal({ name: 'rm_-rf__', arguments: '{}' });
    });

    it('that were not offered are no answer', async () => {
      expect((await failureOn(calls(['look', {}]))).data).to.include({ kind: 'no_text', retryable: true });
    });
  });

  describe('answer', () => {
    const texts: readonly [title: string, reply: Reply, text: string][] = [
      ['may be a list of parts', says([{ type: 'text', text: 'A ' }, { type: 'x' }, { text: 'draft' }]), 'A draft'],
      ['leaves reasoning out', answers({ content: 'A draft', reasoning_content: 'Hm.' }), 'A draft'],
      [
        'may hold fields of the wrong type',
        sends({
          id: 7,
          created: 'today',
          model: [],
          choices: [
            { message: { content: 'A draft', reasoning: { text: 'Hm.' }, annotations: 1 }, finish_reason: 'stop' },
          ],
          usage: {
            prompt_tokens: 11,
            prompt_tokens_details: 'x',
            completion_tokens_details: { reasoning_tokens: 'n' },
          },
        }),
        'A draft',
      ],
    ];
    for (const [title, reply, text] of texts) {
      it(title, async () => {
        server.answerBy([reply]);
        expect((await ask()).text).to.equal(text);
      });
    }
  });

  describe('unusable answer', () => {
    const rows: readonly [title: string, reply: Reply, kind: string, retryable: boolean][] = [
      ['content_filter', says('', 'content_filter'), 'content_filter', false],
      ['a refusal', answers({ content: null, refusal: `I will not. ${KEY}` }), 'refused', false],
      ['no text', says(null), 'empty_answer', true],
      ['no choices', sends({}), 'no_choices', true],
      ['an empty list of choices', sends({ choices: [] }), 'no_choices', true],
      ['choices that are none', sends({ choices: [null] }), 'no_choices', true],
      ['a choice without a message', sends({ choices: [{ text: 'x' }] }), 'no_choices', true],
    ];
    for (const [title, reply, kind, retryable] of rows) {
      it(`${title} is ${kind}, ${retryable ? 'asked' : 'not asked'} again`, async () => {
        const failure = await failureOn(reply);
        const { usage, ...named } = failure.data;
        expect(named).to.deep.equal({ kind, retryable });
        expect(usage ?? REPORTED_USAGE).to.deep.equal(REPORTED_USAGE);
        expect(failure.message).to.include('"model-x"');
      });
    }

    for (const body of [{ choices: [] }, { error: { message: 'No.' } }]) {
      it(`counts what it has cost without an answer: ${JSON.stringify(body)}`, async () => {
        const failure = await failureOn(sends({ ...body, usage: { prompt_tokens: 11, completion_tokens: 0 } }));
        expect(failure.data.usage).to.include({ inputTokens: 11, outputTokens: 0 });
      });
    }

    it('names the error that a router puts into its choice, and waits out its rate limit', async () => {
      const error = { code: 429, message: `Slow down, ${KEY}.` };
      const choice = { message: { content: '' }, finish_reason: 'error', error };
      const failure = await failureOn(sends({ choices: [choice] }));
      expect(failure.data).to.include({ kind: 'rate_limited' });
      expect(failure.message).to.include('Slow down, ….');
    });
  });

  describe('status', () => {
    it('that quotes a part of the key, plain or masked, is shown without that part', async () => {
      const key = 'sk-proj-9fQbV3mXw0TtLr5Yc8Nhz7Kd';
      model = await modelAt(`${server.url}/v1`, key);
      for (const quoted of [
        ...[
          'sk-proj-****************z7Kd',
          'sk-...z7Kd',
          'sk***Kd',
          '•••••••z7Kd.',
          '"sk-proj-9fQb…"',
          '[xxxxxxxxz7Kd]',
          'sk-p----z7Kd',
        ],
        ...[key.slice(0, 20), key.slice(-8), `Bearer:${key.slice(4, 16)}/x`, `${key}${key.slice(2)}`],
      ]) {
        server.answerBy([refuses(401, { message: `Incorrect API key provided: ${quoted} You can find it... there.` })]);
        const { message } = await failureOf(ask());
        expect(message).to.include('Incorrect API key provided: ').and.include(' You can find it... there.');
        expect(message, quoted).to.not.match(/sk-|sk\*|9fQb|mXw0|Kd/);
      }
    });

    it('that says how the key begins or ends is shown without that part', async () => {
      model = await modelAt(`${server.url}/v1`, 'sk-proj-9fQbV3mXw0TtLr5Yc8Nhz7Kd');
      for (const message of [
        'Bad key (ends with z7Kd)',
        'No such token, last 4: "z7Kd".',
        'Your key sk-proj starts it.',
      ]) {
        server.answerBy([refuses(401, { message })]);
        expect((await failureOf(ask())).message, message)
          .to.include('…')
          .and.not.match(/sk-|7Kd/);
      }
    });

    it('names the settings to look at', async () => {
      expect((await failureOn(refuses(401))).message).to.include('(check OPENAI_API_KEY)');
      expect((await failureOn(refuses(404))).message).to.include('(check OPENAI_MODEL and OPENAI_BASE_URL)');
    });

    it('names the node, and not the setting, for a model that the node names', async () => {
      server.answerBy([refuses(404)]);
      const failure = await failureOf(ask({ model: 'of-the-node' }));
      expect(failure.message)
        .to.include('(check the model of the node and OPENAI_BASE_URL)')
        .and.not.include('OPENAI_MODEL');
    });

    for (const [status, message] of [
      [400, 'Invalid model name passed in model=model-x. Call `/v1/models` to view available models for your key.'],
      [400, 'model-x is not a valid model ID'],
      [400, 'could not find real modelID for model-x'],
      [400, "The requested model 'model-x' is not supported by any provider you have enabled."],
      [400, 'Unsupported model: model-x'],
      [400, 'LLM Provider NOT provided. You passed model=model-x'],
      [400, 'Model Not Exist'],
      [422, 'The model `model-x` does not exist.'],
      [503, 'No channel for it'],
    ] as const) {
      it(`${status} "${message.slice(0, 30)}…" names an unknown model: asked once, names OPENAI_MODEL`, async () => {
        const code = status === 503 ? 'model_not_found' : null;
        const failure = await failureOn(refuses(status, { message, code }), { answer: 'critique' });
        // After a bad request a run does not fall back.
        const kind = status === 503 ? 'model_unknown' : 'bad_request';
        expect(failure.data).to.deep.equal({ kind, retryable: false });
        expect(failure.message).to.include('(check OPENAI_MODEL and OPENAI_BASE_URL)').and.include(message);
        expect(server.calls).to.have.length(1);
      });
    }

    for (const [title, body, said] of [
      ['a text as its error', '{"error":"no such model"}', ': no such model'],
      ['a message beside the status', '{"object":"error","message":"too long"}', ': too long'],
      ['a detail', '{"detail":"Not Found"}', ': Not Found'],
      ['a page', '<html>', ''],
    ] as const) {
      it(`with ${title} shows the status${said === '' ? '' : ' and what the server said'}`, async () => {
        const { message } = await failureOn(answersStatus(500, body));
        expect(message.endsWith(`answered 500${said}`), message).to.equal(true);
      });
    }

    it('of a redirect is not followed: the key goes nowhere else', async () => {
      const other = await fakeOpenAi();
      try {
        for (const status of [301, 302, 303, 307, 308]) {
          const failure = await failureOn((response) => response.writeHead(status, { Location: other.url }).end());
          expect(failure.data).to.deep.equal({ kind: 'redirected', retryable: false });
        }
        expect(other.calls).to.have.length(0);
        expect(server.calls).to.have.length(5);
      } finally {
        await other.stop();
      }
    });
  });

  describe('connection', () => {
    it('refused is connection_refused, to an unknown name host_unknown, without TLS tls_failed', async () => {
      const gone = await fakeOpenAi();
      await gone.stop();
      model = await modelAt(gone.url);
      expect((await failureOf(ask())).data.kind).to.equal('connection_refused');
      model = await modelAt('http://nowhere.invalid');
      expect((await failureOf(ask())).data.kind).to.equal('host_unknown');
      model = await modelAt(server.url.replace('http:', 'https:'));
      const { data, message } = await failureOf(ask());
      expect(data).to.deep.equal({ kind: 'tls_failed', retryable: false });
      expect(message).to.include('plain HTTP: check OPENAI_BASE_URL, http:// for https://');
    });

    it('closed in the TLS handshake is connection_lost, with a hint at plain HTTP', async () => {
      const closing = createServer((socket) => socket.once('data', () => socket.end()));
      await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve));
      const { port } = closing.address() as AddressInfo;
      model = await modelAt(`https://127.0.0.1:${port}`);
      const { data, message } = await failureOf(ask());
      expect(data).to.deep.equal({ kind: 'connection_lost', retryable: true });
      expect(message).to.include('plain HTTP: check OPENAI_BASE_URL, http:// for https://');
      await new Promise((resolve) => closing.close(resolve));
    });
  });

  describe('stream', () => {
    const heard: string[] = [];
    const onToken = (text: string): void => void heard.push(text);
    beforeEach(() => heard.splice(0));

    it('is heard as it comes, and is the same answer', async () => {
      server.answerBy([saysInPieces(['A ', 'drä', 'ft'])]);
      expect(await ask({ onToken })).to.deep.equal({ text: 'A dräft', usage: REPORTED_USAGE });
      expect(heard).to.deep.equal(['A ', 'drä', 'ft']);
      expect(server.calls[0]?.body).to.deep.include({ stream: true, stream_options: { include_usage: true } });
    });

    it('is asked for without its usage where a server refuses that', async () => {
      server.answerBy(({ body }) =>
        body.stream_options === undefined ? saysInPieces(['A draft']) : refuses(400, { message: 'stream_options?' }),
      );
      expect((await ask({ onToken })).text).to.equal('A draft');
      expect(server.calls).to.have.length(2);
    });

    it('is asked for whole where a server streams nothing, and that is remembered', async () => {
      server.answerBy(({ body }) => (body.stream === undefined ? says('A draft') : answersStatus(400, 'no')));
      for (let time = 0; time < 2; time += 1) expect((await ask({ onToken })).text).to.equal('A draft');
      expect(server.calls).to.have.length(3);
      expect(heard).to.deep.equal(['A draft', 'A draft']);
    });

    it('may come whole from a server that cannot stream', async () => {
      expect((await ask({ onToken })).text).to.equal('A draft');
      expect(heard).to.deep.equal(['A draft']);
    });

    it('holds calls whose arguments come in pieces', async () => {
      const delta = (index: number, call: object) => ({ choices: [{ delta: { tool_calls: [{ index, ...call }] } }] });
      server.answerBy([
        streams([
          delta(0, { id: 'a', function: { name: 'look', arguments: '' } }),
          delta(1, { id: 'b', function: { name: 'look', arguments: '{"query":' } }),
          delta(0, { function: { arguments: '{"query":"oaks"}' } }),
          delta(1, { function: { arguments: '"elms"}' } }),
          { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
          '[DONE]',
        ]),
      ]);
      const { calls: asked = [] } = await ask({ tools: TOOLS, onToken });
      expect(asked.map(({ id, argumentsJson }) => [id, argumentsJson])).to.deep.equal([
        ['a', '{"query":"oaks"}'],
        ['b', '{"query":"elms"}'],
      ]);
      expect(heard).to.deep.equal([]);
    });

    const rows: readonly [title: string, reply: Reply, kind: string][] = [
      ['that is cut off at the limit', streams([{ choices: [{ delta: {}, finish_reason: 'length' }] }]), 'max_tokens'],
      ['without a choice', streams(['[DONE]']), 'no_choices'],
    ];
    for (const [title, reply, kind] of rows) {
      it(`${title} is ${kind}`, async () => {
        expect((await failureOn(reply, { onToken })).data.kind).to.equal(kind);
      });
    }
  });
});
