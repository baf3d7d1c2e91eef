/** What real servers do that their documentation does not say; each habit was met in 2026. */
import { expect } from 'chai';
import { userMessage } from '../../src/models/material.js';
import type { ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { LanguageModel, ModelAnswer, ModelRequest } from '../../src/models/port.js';
import type { System } from '../../src/system/system.js';
import type { OpenAiRequest } from '../support/fake-openai.js';
import { answers, refuses, says, USAGE } from '../support/fake-openai.js';
import type { FakeServer, Reply } from '../support/fake-server.js';
import { fakeServer, resets, sends, streams } from '../support/fake-server.js';
import { modelFailureOf, REPORTED_USAGE, REQUEST, TOOLS } from '../support/model-requests.js';
import { modelAt } from '../support/provider-models.js';
import { rejectionOf } from '../support/rejection.js';

const NOW = '2026-01-02T03:04:05.000Z';

const WHOLE = { choices: [{ message: { content: 'A draft' }, finish_reason: 'stop' }] };
const SPACES = ' '.repeat(4_000_000);

const refusesWith =
  (status: number, body: unknown) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body));
  };

const raw = (body: unknown): object => ({
  error: { message: 'Provider returned error', code: 429, metadata: { raw: JSON.stringify(body) } },
});

describe('Habits of OpenAI-compatible servers', () => {
  let server: FakeServer<OpenAiRequest>;
  let model: LanguageModel;
  let heard: string[];
  const onToken = (text: string): void => void heard.push(text);
  const ask = (request: Partial<ModelRequest> = {}): Promise<ModelAnswer> =>
    model.ask({ ...REQUEST, ...request }, { signal: new AbortController().signal });

  beforeEach(async () => {
    heard = [];
    server = await fakeServer<OpenAiRequest>([says('A draft')]);
    model = await modelAt('openai', { baseUrl: `${server.url}/v1`, apiKey: 'k', model: 'm', now: NOW });
  });
  afterEach(() => server.stop());

  describe('reasoning', () => {
    const called = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"query":"oaks"}' } };
    const thinks = { role: 'assistant', content: null, reasoning_content: 'Look first.', tool_calls: [called] };

    for (const reasoning of ['Look first.', '']) {
      it(`"${reasoning}" is sent back beside the tool calls it led to`, async () => {
        server.answerBy(({ body }) => {
          const again = body.messages.find(({ role }) => role === 'assistant');
          if (again === undefined) return answers({ ...thinks, reasoning_content: reasoning }, 'tool_calls');
          const isWhole = 'reasoning_content' in again && again.reasoning_content === reasoning;
          return isWhole ? says('Done') : refuses(400, { message: 'reasoning_content is missing' });
        });
        for (const listens of [{}, { onToken }]) {
          const { text, calls = [], turn } = await ask({ tools: TOOLS, ...listens });
          const exchanges = calls.map((call) => ({ call, result: 'Old.' }));
          expect((await ask({ tools: TOOLS, rounds: [{ text, exchanges, turn }], ...listens })).text).to.equal('Done');
        }
      });
    }

    it('is left out for a server that refuses the field', async () => {
      server.answerBy(({ body }) => {
        const again = body.messages.find(({ role }) => role === 'assistant');
        if (again === undefined) return answers(thinks, 'tool_calls');
        return 'reasoning_content' in again
          ? refuses(422, { message: 'reasoning_content: extra field' })
          : says('Done');
      });
      const { text, calls = [], turn } = await ask({ tools: TOOLS });
      const exchanges = calls.map((call) => ({ call, result: 'Old.' }));
      expect((await ask({ tools: TOOLS, rounds: [{ text, exchanges, turn }] })).text).to.equal('Done');
    });

    it('without an answer says so', async () => {
      server.answerBy([answers({ role: 'assistant', content: '', reasoning: 'Hm. Oaks.' }, 'stop')]);
      const failure = await modelFailureOf(ask());
      expect(failure.data).to.include({ kind: 'thoughts_only', retryable: true });
    });
  });

  describe('finish reasons', () => {
    for (const reason of ['end_turn', 'eos_token', 'STOP', 'COMPLETE', 'Stop', 'eos', '']) {
      it(`"${reason}" completes an answer`, async () => {
        server.answerBy([says('A draft', reason)]);
        expect(await ask())
          .to.include({ text: 'A draft' })
          .and.not.have.property('finish');
      });
    }

    for (const reason of ['MAX_TOKENS', 'max_tokens', 'model_length', 'Length']) {
      it(`"${reason}" is the limit of output tokens`, async () => {
        server.answerBy([says('A dra', reason)]);
        expect((await modelFailureOf(ask())).data).to.include({ kind: 'max_tokens', retryable: false });
      });
    }

    it('of tomorrow beside a text are accepted and reported', async () => {
      server.answerBy([says('A draft', 'satisfied')]);
      expect(await ask()).to.include({ text: 'A draft', finish: 'satisfied' });
      expect(server.calls).to.have.length(1);
    });
  });

  describe('streams', () => {
    const piece = (content: string): object => ({ choices: [{ index: 0, delta: { content } }] });
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
    const lines =
      (text: string, type = 'text/event-stream'): Reply =>
      (response) => {
        response.writeHead(200, { 'Content-Type': type });
        response.end(text);
      };
    const events = (...data: readonly unknown[]): string =>
      data.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('');

    const readable: readonly (readonly [title: string, reply: Reply])[] = [
      ['with empty data lines', lines(`data:\n\n${events(piece('A '), piece('draft'))}data: \n\n${events(end)}`)],
      ['with comments and heartbeats', lines(`: hi\n\n${events(piece('A draft'))}: PROCESSING\n\n${events(end)}`)],
      ['with lines that end in CR alone', lines(events(piece('A draft'), end).replaceAll('\n', '\r'))],
      ['with a content type in another case', lines(events(piece('A draft'), end), 'Text/Event-Stream; charset=UTF-8')],
      ['with the content type of a plain text', lines(events(piece('A draft'), end), 'text/plain')],
      ['with [DONE] and no finish reason', lines(`${events(piece('A draft'))}data: [DONE]\n\n`)],
      ['after megabytes of empty lines', lines(`${'\n'.repeat(4_000_000)}${events(piece('A draft'), end)}`)],
      ['that is a JSON answer among megabytes of spaces', lines(`${SPACES}${JSON.stringify(WHOLE)}${SPACES}`)],
      ['with no empty line after the last event', lines(`${events(piece('A draft'))}data: ${JSON.stringify(end)}`)],
      ['that is a JSON answer followed by [DONE]', lines(`${JSON.stringify(WHOLE)}\n\ndata: [DONE]\n\n`)],
    ];
    for (const [title, reply] of readable) {
      it(`${title} are read, and paid once`, async () => {
        server.answerBy([reply]);
        expect((await ask({ onToken })).text).to.equal('A draft');
        expect(heard.join('')).to.equal('A draft');
        expect(server.calls).to.have.length(1);
      });
    }

    it('that cannot be read are asked for again as a whole, and what was heard is void', async () => {
      server.answerBy(({ body }) =>
        body.stream === true ? lines(`${events(piece('Half'))}data: {"choices": [\n\n`) : says('A draft'),
      );
      let starts = 0;
      const onStart = (): void => {
        starts += 1;
        heard = [];
      };
      expect((await ask({ onToken, onStart })).text).to.equal('A draft');
      expect(heard).to.deep.equal(['A draft']);
      expect(starts).to.equal(1);
    });

    const broken: readonly (readonly [title: string, reply: Reply])[] = [
      ['reset before their first byte', resets],
      [
        'reset in the middle',
        (response) => {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          response.write(events(piece('Half')), () => response.socket?.resetAndDestroy());
        },
      ],
      ...[403, 405, 500, 501, 503, 504].map((status) => [`refused with ${status}`, refuses(status)] as const),
      ['redirected', (response) => response.writeHead(307, { Location: '/elsewhere' }).end()],
      ['that end in an error', lines(events(piece('Half'), { error: { message: 'No.', code: 500 } }))],
      [
        'that break off after "null" as a finish reason',
        lines(events({ choices: [{ delta: { content: 'Half' }, finish_reason: 'null' }] })),
      ],
      ['that hold no choice', lines('data: [DONE]\n\n')],
      ['that hold no text', lines(events(end))],
      [
        'that hold a message for a delta',
        lines(events({ choices: [{ message: { content: 'A' }, finish_reason: 'stop' }] })),
      ],
    ];
    for (const [title, reply] of broken) {
      it(`${title} fail no run because a client follows its stream`, async () => {
        server.answerBy(({ body }) => (body.stream === true ? reply : says('A draft')));
        expect((await ask({ onToken, onStart: () => (heard = []) })).text).to.equal('A draft');
        expect(heard).to.deep.equal(['A draft']);
        expect(server.calls).to.have.length(2);
      });
    }

    it('that fail for a reason that a whole answer shares are not asked for again', async () => {
      for (const [reply, kind] of [
        [refuses(401), 'unauthorized'],
        [refuses(402), 'quota_used_up'],
        [refuses(429), 'rate_limited'],
        [says('', 'content_filter'), 'content_filter'],
      ] as const) {
        const before = server.calls.length;
        server.answerBy([reply]);
        expect((await modelFailureOf(ask({ onToken }))).data.kind).to.equal(kind);
        expect(server.calls).to.have.length(before + 1);
      }
    });

    it('fail by what the whole answer says', async () => {
      server.answerBy(({ body }) => (body.stream === true ? resets : refuses(400, { message: 'Too long' })));
      const failure = await modelFailureOf(ask({ onToken }));
      expect([failure.data.kind, server.calls.length]).to.deep.equal(['bad_request', 2]);
    });

    const repeated: readonly (readonly [title: string, reply: Reply, settled: readonly unknown[]])[] = [
      ['that report their usage, with it', lines(events({ ...end, usage: USAGE })), [REPORTED_USAGE]],
      ['that break off, with an unknown one', lines(events(piece('Half'))), [null]],
      ['reset before their first byte, with an unknown one', resets, [null]],
      ['that end in an error, with an unknown one', lines(events({ error: { message: 'No.', code: 500 } })), [null]],
      ['lost by a gateway, with an unknown one', refuses(504), [null]],
      ['refused by a server that is out, not at all', refuses(503), []],
      ['refused for their form, not at all', refuses(400), []],
    ];
    for (const [title, reply, settled] of repeated) {
      it(`are settled before they are asked for as a whole: those ${title}`, async () => {
        server.answerBy(({ body }) => (body.stream === true ? reply : says('A draft')));
        const usages: unknown[] = [];
        const beforeRepeat = async (usage: unknown): Promise<void> => {
          usages.push(usage);
          expect(server.calls).to.have.length(1);
        };
        expect((await ask({ onToken, beforeRepeat })).usage).to.include({ inputTokens: 11, outputTokens: 7 });
        expect(usages).to.deep.equal(settled);
        expect(server.calls).to.have.length(2);
      });
    }

    it('are not asked for as a whole if they may not be', async () => {
      server.answerBy([resets]);
      const beforeRepeat = (): Promise<void> => Promise.reject(new Error('No budget'));
      expect(await rejectionOf(ask({ onToken, beforeRepeat }))).to.have.property('message', 'No budget');
      expect(server.calls).to.have.length(1);
    });

    it('that are complete stay complete when the connection is reset after them', async () => {
      server.answerBy([
        (response) => {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          response.write(events(piece('A draft'), end), () => response.socket?.resetAndDestroy());
        },
      ]);
      expect((await ask({ onToken })).text).to.equal('A draft');
      expect(server.calls).to.have.length(1);
    });

    it('that are complete end though the server keeps the connection open', async () => {
      const after: System['after'] = (_delayMs, callback) => {
        const timer = setImmediate(callback);
        return () => clearImmediate(timer);
      };
      model = await modelAt('openai', { baseUrl: `${server.url}/v1`, apiKey: 'k', model: 'm', after });
      server.answerBy([streams([piece('A draft'), end], { ends: false })]);
      expect((await ask({ onToken })).text).to.equal('A draft');
      await server.until(() => server.abandoned() === 1);
      expect(server.calls).to.have.length(1);
    });

    it('that the request did not ask for are read too', async () => {
      server.answerBy([lines(events(piece('A '), piece('draft'), end))]);
      expect((await ask()).text).to.equal('A draft');
      expect(server.calls).to.have.length(1);
    });
  });

  describe('tool calls', () => {
    const call = (id: string | undefined, query: string) => ({
      index: 0,
      ...(id !== undefined && { id }),
      function: { name: 'look', arguments: JSON.stringify({ query }) },
    });

    const look = (id: string, query: string) => ({ index: 0, id, function: call(undefined, query).function });
    const complete: readonly (readonly [title: string, pieces: readonly object[]])[] = [
      ['two ids', [look('a', 'oaks'), look('b', 'elms')]],
      ['no id', [look('', 'oaks'), look('', 'elms')]],
      ['one id', [look('a', 'oaks'), look('a', 'elms')]],
    ];
    for (const [title, pieces] of complete) {
      it(`in a stream that all carry index 0 and ${title} are kept apart, in one event or in two`, async () => {
        for (const deltas of [pieces.map((each) => [each]), [pieces]]) {
          server.answerBy([
            streams([
              ...deltas.map((each) => ({ choices: [{ delta: { tool_calls: each } }] })),
              { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
            ]),
          ]);
          const { calls = [] } = await ask({ tools: TOOLS, onToken });
          expect(calls.map(({ argumentsJson }) => argumentsJson)).to.deep.equal([
            '{"query":"oaks"}',
            '{"query":"elms"}',
          ]);
          expect(new Set(calls.map(({ id }) => id)).size).to.equal(2);
        }
      });
    }

    it('in a stream that repeats the name in each piece are one call', async () => {
      for (const id of ['', 'a']) {
        const pieces = ['{"query":', '"{oaks}"', '}'].map((args) => ({
          index: 0,
          id,
          function: { name: 'look', arguments: args },
        }));
        server.answerBy([
          streams([
            ...pieces.map((each) => ({ choices: [{ delta: { tool_calls: [each] } }] })),
            { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
          ]),
        ]);
        const { calls = [] } = await ask({ tools: TOOLS, onToken });
        expect(calls.map(({ argumentsJson }) => argumentsJson)).to.deep.equal(['{"query":"{oaks}"}']);
      }
    });

    it('that share one id are kept apart', async () => {
      server.answerBy([answers({ content: null, tool_calls: [call('a', 'oaks'), call('a', 'elms')] }, 'tool_calls')]);
      const { calls = [] } = await ask({ tools: TOOLS });
      expect(new Set(calls.map(({ id }) => id)).size).to.equal(2);
    });

    const written: readonly (readonly [title: string, text: string])[] = [
      ['in a tag', '<tool_call>\n{"name": "look", "arguments": {"query": "oaks"}}\n</tool_call>'],
      ['as a bare object', '{"name": "look", "arguments": {"query": "oaks"}}'],
      ['in a code fence', '```json\n{"name": "look", "parameters": {"query": "oaks"}}\n```'],
      ['after a mark', '[TOOL_CALLS][{"name": "look", "arguments": {"query": "oaks"}}]'],
    ];
    for (const [title, text] of written) {
      it(`written into the text ${title} are calls, and sent back as calls`, async () => {
        server.answerBy([says(text), says('Done')]);
        const { calls = [], turn } = await ask({ tools: TOOLS });
        expect(calls.map(({ name, argumentsJson }) => [name, JSON.parse(argumentsJson) as unknown])).to.deep.equal([
          ['look', { query: 'oaks' }],
        ]);
        const exchanges = calls.map((each) => ({ call: each, result: 'Old.' }));
        await ask({ tools: TOOLS, rounds: [{ text, exchanges, turn }] });
        const again = server.calls[1]?.body.messages.find(({ role }) => role === 'assistant');
        expect(again?.tool_calls).to.have.length(1);
        expect(again?.content).to.equal(null);
      });
    }

    it('written into the text that cannot be read are asked for again, never a draft', async () => {
      server.answerBy([says('<tool_call>{"name": "look", "arguments": {</tool_call>')]);
      const failure = await modelFailureOf(ask({ tools: TOOLS }));
      expect(failure.data).to.include({ kind: 'malformed_function_call', retryable: true });
    });

    it('are text where no tools are offered', async () => {
      const text = '{"name": "Oak", "arguments": {"age": 300}}';
      server.answerBy([says(text)]);
      expect((await ask()).text).to.equal(text);
    });
  });

  describe('refused requests', () => {
    const accepts = (isAccepted: (body: OpenAiRequest) => boolean, message: string): void =>
      server.answerBy(({ body }) => (isAccepted(body) ? says('A draft') : refuses(400, { message })));

    it('for a system role: its text begins the first user message, from then on', async () => {
      accepts(({ messages }) => messages.every(({ role }) => role !== 'system'), 'System role not supported');
      expect(await ask()).to.deep.include({ text: 'A draft', dropped: ['system_role'] });
      await ask();
      expect(server.calls).to.have.length(3);
      const [first] = server.calls[2]?.body.messages ?? [];
      expect(first?.content).to.equal(`${REQUEST.system}\n\n${REQUEST.prompt}`);
      // The material stays first, so that the server can cache it for all nodes.
      await ask({ material: 'A lease' });
      const [withMaterial] = server.calls[3]?.body.messages ?? [];
      const prompt = `${REQUEST.system}\n\n${REQUEST.prompt}`;
      expect(withMaterial?.content).to.equal(userMessage({ material: 'A lease', prompt }));
    });

    for (const [status, message] of [
      [500, 'Jinja Exception: System role not supported'],
      [400, 'Conversation roles must alternate user/assistant/user/assistant/...'],
      [400, 'Only user and assistant roles are supported!'],
      [400, "Unexpected role: 'system'"],
    ] as const) {
      it(`for a system role with ${status} "${message}": its text begins the first user message, from then on`, async () => {
        server.answerBy(({ body }) =>
          body.messages.some(({ role }) => role === 'system') ? refuses(status, { message }) : says('A draft'),
        );
        for (const listens of [{}, { onToken }]) {
          expect(await ask(listens)).to.deep.include({ text: 'A draft', dropped: ['system_role'] });
        }
        expect(server.calls).to.have.length(3);
      });
    }

    it('for a temperature: it is dropped, from then on, and the answer says so', async () => {
      accepts(({ temperature }) => temperature === undefined, "Unsupported value: 'temperature' does not support 0.2");
      expect(await ask({ temperature: 0.2 })).to.deep.include({ text: 'A draft', dropped: ['temperature'] });
      await ask({ temperature: 0.2 });
      expect(server.calls).to.have.length(3);
    });

    it('for both, and for the name of the limit: one after the other', async () => {
      server.answerBy(({ body }) => {
        if (body.max_tokens !== undefined) return refuses(400, { message: 'Use max_completion_tokens' });
        if (body.temperature !== undefined) return refuses(400, { message: 'temperature is not supported' });
        return body.messages.some(({ role }) => role === 'system')
          ? refuses(400, { message: 'no system role' })
          : says('A draft');
      });
      const { text, dropped } = await ask({ temperature: 1, maxOutputTokens: 9 });
      expect([text, dropped]).to.deep.equal(['A draft', ['temperature', 'system_role']]);
    });
  });

  describe('errors', () => {
    const rows: readonly (readonly [title: string, reply: Reply, kind: string, words: string])[] = [
      [
        "a router's, with the provider's own words",
        refusesWith(400, {
          error: {
            message: 'Provider returned error',
            code: 400,
            metadata: { raw: '{"error":{"message":"Too hot"}}', provider_name: 'X' },
          },
        }),
        ...(['bad_request', 'Too hot'] as const),
      ],
      [
        'a list in detail',
        refusesWith(422, { detail: [{ loc: ['body', 'model'], msg: 'field required', type: 'missing' }] }),
        ...(['http_error', 'body model field required'] as const),
      ],
      [
        'no credit left',
        refusesWith(402, { error: { message: 'Insufficient credits', code: 402 } }),
        'quota_used_up',
        'Insufficient credits',
      ],
      ['no capacity', refuses(498, { code: 'capacity_exceeded' }), 'overloaded', '498'],
      ['a prompt above the limit per minute', refuses(413, { code: 'rate_limit_exceeded' }), 'input_too_large', '413'],
      ['an error with status 200', sends({ error: { message: 'Overloaded', code: 503 } }), 'unavailable', 'Overloaded'],
      [
        'an error in the body itself with status 200',
        sends({ object: 'error', message: 'The model does not exist.', type: 'NotFoundError', param: null, code: 404 }),
        'model_unknown',
        'does not exist',
      ],
      ['an error in detail with status 200', sends({ detail: 'Out of memory' }), 'error_answer', 'Out of memory'],
      [
        'a rate limit in words with status 200',
        sends({ error: { message: 'Slow down', code: 'rate_limit_exceeded' } }),
        'rate_limited',
        'Slow down',
      ],
      [
        'the number of a rate limit as a text, with status 200',
        sends({ error: { message: 'Slow down', code: '429' } }),
        'rate_limited',
        'Slow down',
      ],
      ['the type of a rate limit with status 200', sends({ error: { type: 'rate_limit_error' } }), 'rate_limited', ''],
      [
        'a rate limit with status 200',
        sends({ error: { message: 'Slow down', code: 429 } }),
        'rate_limited',
        'Slow down',
      ],
    ];
    for (const [title, reply, kind, words] of rows) {
      it(`${title}: ${kind}`, async () => {
        server.answerBy([reply]);
        const failure = await modelFailureOf(ask());
        expect(failure.data.kind).to.equal(kind);
        expect(failure.message).to.include(words);
      });
    }
  });

  describe('an empty account or a rate limit', () => {
    const spent = 'You exceeded your current quota, please check your plan and billing details.';
    const exhausted = { code: 429, message: spent, status: 'RESOURCE_EXHAUSTED' };
    const quota = (quotaId: string): object => ({
      error: {
        ...exhausted,
        details: [
          { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' },
        ],
      },
    });
    const rows: readonly (readonly [title: string, status: number, body: unknown, kind: string])[] = [
      ["Gemini's limit per minute", 429, quota('GenerateRequestsPerMinutePerProjectPerModel-FreeTier'), 'rate_limited'],
      ["Gemini's limit per minute in a list", 429, [quota('GenerateContentPerMinute')], 'rate_limited'],
      ["Gemini's limit through a router", 429, raw(quota('GenerateRequestsPerMinute')), 'rate_limited'],
      ["Gemini's limit without details", 429, { error: exhausted }, 'rate_limited'],
      ["Gemini's limit per day", 429, quota('GenerateRequestsPerDayPerProjectPerModel-FreeTier'), 'quota_used_up'],
      [
        "Gemini's prepaid account",
        429,
        { error: { ...exhausted, message: 'Your prepayment credits are depleted. Please go to AI Studio.' } },
        'quota_used_up',
      ],
      [
        'OpenAI',
        429,
        { error: { message: spent, type: 'insufficient_quota', code: 'insufficient_quota' } },
        'quota_used_up',
      ],
      [
        'Anthropic, not paid',
        400,
        { error: { message: 'Your credit balance is too low to access the API.' } },
        'quota_used_up',
      ],
      ['OpenAI without a code', 429, { error: { message: spent, code: null } }, 'quota_used_up'],
      ['OpenAI, not paid', 429, { error: { message: 'Not active.', code: 'billing_not_active' } }, 'quota_used_up'],
      [
        'xAI',
        429,
        {
          code: 'Some resource has been exhausted',
          error: 'Your team x has either used all available credits or reached its monthly spending limit.',
        },
        'quota_used_up',
      ],
      ['Moonshot', 429, { error: { message: 'Suspended.', type: 'exceeded_current_quota_error' } }, 'quota_used_up'],
      ['Alibaba', 400, { error: { message: 'Access denied.', code: 'Arrearage' } }, 'quota_used_up'],
      ['Groq', 400, { error: { message: 'API access blocked.', code: 'blocked_api_access' } }, 'quota_used_up'],
      [
        'Anthropic',
        400,
        {
          type: 'error',
          error: {
            type: 'invalid_request_error',
            message: 'You have reached your specified API usage limits. You will regain access on 2026-02-01.',
          },
        },
        'quota_used_up',
      ],
    ];
    for (const [title, status, body, kind] of rows) {
      it(`${title}: ${kind}`, async () => {
        server.answerBy([refusesWith(status, body)]);
        expect((await modelFailureOf(ask())).data.kind).to.equal(kind);
      });
    }
  });

  it('is waited out as long as an error with status 200 asks', async () => {
    const error = { code: 429, message: 'Slow down', metadata: { headers: { 'Retry-After': '7' } } };
    server.answerBy([sends({ error })]);
    const { kind, retryAfterMs } = (await modelFailureOf(ask())).data;
    expect([kind, retryAfterMs]).to.deep.equal(['rate_limited', 7_000]);
  });

  describe('usage', () => {
    const used = async (usage: unknown): Promise<ModelAnswer['usage']> => {
      server.answerBy([sends({ choices: [{ message: { content: 'x' }, finish_reason: 'stop' }], usage })]);
      return (await ask()).usage;
    };

    it('counts cached and reasoning tokens within the totals', async () => {
      const details = {
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 3 },
      };
      expect(await used({ ...USAGE, ...details })).to.deep.equal({
        inputTokens: 11,
        cachedInputTokens: 4,
        cacheWriteTokens: null,
        outputTokens: 7,
        reasoningTokens: 3,
      });
    });

    it('of a server that counts reasoning beside the completion is added up', async () => {
      const usage = {
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 21,
        completion_tokens_details: { reasoning_tokens: 3 },
      };
      expect(await used(usage)).to.include({ outputTokens: 10, reasoningTokens: 3 });
    });

    it('is unknown where it is missing or no number, never 0', async () => {
      for (const usage of [undefined, null, {}, { prompt_tokens: '11', completion_tokens: null }]) {
        const { inputTokens, outputTokens } = await used(usage);
        expect(isDeepStrictEqual([inputTokens, outputTokens], [null, null])).to.equal(true);
      }
    });
  });
});
