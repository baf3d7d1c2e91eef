/** Answers in the forms that real servers give them, as of 2026: the shapes are theirs, the words are ours. */
import { expect } from 'chai';
import { ModelFailed } from '../../src/errors.js';
import type { LanguageModel, ModelRequest } from '../../src/models/port.js';
import type { FakeServer, Reply } from '../support/fake-server.js';
import { fakeServer, sends, streams } from '../support/fake-server.js';
import { REQUEST, TOOLS } from '../support/model-requests.js';
import { modelAt } from '../support/provider-models.js';
import { rejectionOf } from '../support/rejection.js';

/** Every path an answer can be asked for on. */
const PATHS: readonly (readonly [path: string, request: Partial<ModelRequest>])[] = [
  ['plainly', {}],
  ['as a stream', { onToken: () => undefined }],
  ['with tools', { tools: TOOLS }],
  ['as a stream with tools', { tools: TOOLS, onToken: () => undefined }],
  ['of a critic', { answer: 'critique' }],
  ['of a critic with tools', { answer: 'critique', tools: TOOLS }],
];

const GEMINI_BLOCK = {
  promptFeedback: { blockReason: 'PROHIBITED_CONTENT', safetyRatings: [{ category: 'X', probability: 'HIGH' }] },
  usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 },
  modelVersion: 'gemini-x',
  responseId: 'r2',
};

const NOW = '2026-01-02T03:04:05.000Z';

describe('Answers as real servers give them', () => {
  let server: FakeServer<{ readonly stream?: boolean }>;

  const models = {
    'OpenAI-likes': (): Promise<LanguageModel> =>
      modelAt('openai', { apiKey: 'k', baseUrl: server.url, model: 'm', now: NOW }),
    Gemini: (): Promise<LanguageModel> =>
      modelAt('gemini', { apiKey: 'k', baseUrl: `${server.url}/v1beta`, model: 'm', now: NOW }),
  };

  beforeEach(async () => {
    server = await fakeServer([]);
  });
  afterEach(() => server.stop());

  const sound: readonly (readonly [who: keyof typeof models, title: string, reply: Reply])[] = [
    [
      'OpenAI-likes',
      "the vendor's",
      sends({
        id: 'chatcmpl-A1',
        object: 'chat.completion',
        created: 1_770_000_000,
        model: 'gpt-x-2026-01-01',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: 'Oaks grow.', refusal: null, annotations: [] },
            logprobs: null,
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 9, completion_tokens: 3, completion_tokens_details: { reasoning_tokens: 0 } },
        service_tier: 'default',
        system_fingerprint: null,
      }),
    ],
    [
      'OpenAI-likes',
      "vLLM's of a model that reasons",
      sends({
        id: 'chatcmpl-0b',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', reasoning_content: 'Hm.', content: '\n\nOaks grow.', tool_calls: [] },
            finish_reason: 'stop',
            stop_reason: null,
          },
        ],
        prompt_logprobs: null,
        kv_transfer_params: null,
      }),
    ],
    [
      'OpenAI-likes',
      "DeepSeek's stream of a model that reasons",
      streams([
        { choices: [{ index: 0, delta: { role: 'assistant', content: null, reasoning_content: '' } }] },
        { choices: [{ index: 0, delta: { content: null, reasoning_content: 'Hm.' }, finish_reason: null }] },
        { choices: [{ index: 0, delta: { content: 'Oaks ', reasoning_content: null }, finish_reason: null }] },
        { choices: [{ index: 0, delta: { content: 'grow.' }, finish_reason: null }] },
        { choices: [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }], usage: { prompt_tokens: 9 } },
        '[DONE]',
      ]),
    ],
    [
      'OpenAI-likes',
      "Ollama's stream",
      streams([
        { id: 'chatcmpl-1', choices: [{ index: 0, delta: { role: 'assistant', content: '', reasoning: 'Hm.' } }] },
        {
          id: 'chatcmpl-1',
          choices: [{ index: 0, delta: { role: 'assistant', content: 'Oaks ' }, finish_reason: null }],
        },
        {
          id: 'chatcmpl-1',
          choices: [{ index: 0, delta: { role: 'assistant', content: 'grow.' }, finish_reason: 'stop' }],
        },
        '[DONE]',
      ]),
    ],
    [
      'OpenAI-likes',
      "Azure's stream, with what its filters found",
      streams([
        {
          choices: [],
          prompt_filter_results: [{ prompt_index: 0, content_filter_results: { hate: { filtered: false } } }],
        },
        {
          choices: [{ index: 0, delta: { role: 'assistant', content: '', refusal: null }, content_filter_results: {} }],
        },
        { choices: [{ index: 0, delta: { content: 'Oaks grow.' }, content_filter_results: {}, finish_reason: null }] },
        { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        '[DONE]',
      ]),
    ],
    [
      'OpenAI-likes',
      "Mistral's stream of a model that reasons, its content in parts",
      streams([
        {
          choices: [
            { index: 0, delta: { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] } },
          ],
        },
        { choices: [{ index: 0, delta: { content: [{ type: 'text', text: 'Oaks ' }] } }] },
        { choices: [{ index: 0, delta: { content: 'grow.' }, finish_reason: 'stop' }] },
        '[DONE]',
      ]),
    ],
    [
      'Gemini',
      'the one of a model that thinks',
      sends({
        candidates: [
          {
            content: { parts: [{ text: 'Oaks grow.', thoughtSignature: 'c2ln' }], role: 'model' },
            finishReason: 'STOP',
            index: 0,
          },
        ],
        usageMetadata: {
          promptTokenCount: 9,
          candidatesTokenCount: 3,
          totalTokenCount: 60,
          promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }],
          thoughtsTokenCount: 48,
        },
        modelVersion: 'gemini-x',
        responseId: 'r1',
      }),
    ],
    [
      'Gemini',
      'its stream, whose signature comes last',
      streams([
        { candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }], role: 'model' }, index: 0 }] },
        { candidates: [{ content: { parts: [{ text: 'Oaks grow.' }], role: 'model' }, index: 0 }] },
        {
          candidates: [
            {
              content: { parts: [{ text: '', thoughtSignature: 'c2ln' }], role: 'model' },
              finishReason: 'STOP',
              index: 0,
            },
          ],
          usageMetadata: { promptTokenCount: 9, totalTokenCount: 60 },
        },
      ]),
    ],
  ];
  for (const [who, title, reply] of sound) {
    it(`of ${who} are read: ${title}`, async () => {
      server.answerBy([reply]);
      let heard = '';
      const model = await models[who]();
      const isStream = /stream/.test(title);
      const request = isStream ? { ...REQUEST, onToken: (text: string) => void (heard += text) } : REQUEST;
      expect((await model.ask(request, new AbortController())).text.trim()).to.equal('Oaks grow.');
      if (isStream) expect(heard).to.equal('Oaks grow.');
      expect(server.calls).to.have.length(1);
    });
  }

  /** By what a stream of it holds, where one was asked for. */
  const blocked: readonly (readonly [
    who: keyof typeof models,
    title: string,
    kind: string,
    whole: Reply,
    streamed: Reply,
  ])[] = [
    ...[400, 403].map((status) => refusedAs(status)),
    [
      'OpenAI-likes',
      'an emptied choice',
      'content_filter',
      sends({ choices: [{ index: 0, finish_reason: 'content_filter' }] }),
      streams([{ choices: [{ index: 0, finish_reason: 'content_filter' }] }]),
    ],
    [
      'OpenAI-likes',
      'a refusal',
      'refused',
      sends({ choices: [{ message: { content: null, refusal: 'I will not.' }, finish_reason: 'stop' }] }),
      streams([
        { choices: [{ delta: { refusal: 'I will ' } }] },
        { choices: [{ delta: { refusal: 'not.' } }] },
        '[DONE]',
      ]),
    ],
    [
      'OpenAI-likes',
      'a refusal among the parts',
      'refused',
      sends({ choices: [{ message: { content: [{ type: 'refusal', refusal: 'No.' }] }, finish_reason: 'stop' }] }),
      streams([{ choices: [{ delta: { refusal: 'No.' }, finish_reason: 'stop' }] }]),
    ],
    [
      'OpenAI-likes',
      'an error with status 200',
      'prompt_blocked',
      sends({ error: { code: 'content_filter', message: 'Filtered.' } }),
      streams([{ error: { code: 'content_filter', message: 'Filtered.' } }]),
    ],
    ['Gemini', 'feedback on the prompt', 'prompt_blocked', sends(GEMINI_BLOCK), streams([GEMINI_BLOCK])],
    [
      'Gemini',
      'feedback without its empty line',
      'prompt_blocked',
      sends(GEMINI_BLOCK),
      (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.end(`data: ${JSON.stringify(GEMINI_BLOCK)}`);
      },
    ],
    [
      'Gemini',
      'a candidate withheld',
      'safety',
      sends({ candidates: [{ finishReason: 'SAFETY', index: 0, safetyRatings: [] }] }),
      streams([{ candidates: [{ finishReason: 'SAFETY', index: 0, safetyRatings: [] }] }]),
    ],
  ];
  for (const [who, title, kind, whole, streamed] of blocked) {
    for (const [path, request] of PATHS) {
      it(`of ${who} blocked by ${title} fail as ${kind} ${path}`, async () => {
        server.answerBy(({ path: address, body }) =>
          body.stream === true || address.includes(':stream') ? streamed : whole,
        );
        const failure = await rejectionOf((await models[who]()).ask({ ...REQUEST, ...request }, new AbortController()));
        if (!(failure instanceof ModelFailed)) throw failure;
        expect(failure.data).to.include({ kind, retryable: false });
        expect(failure.message).to.match(/block|filter|refused|unsafe/);
        expect(server.calls).to.have.length(1);
      });
    }
  }
});

/** As Azure (400) and OpenRouter (403) refuse a prompt. */
function refusedAs(status: number): readonly ['OpenAI-likes', string, string, Reply, Reply] {
  const error =
    status === 400
      ? { code: 'content_filter', message: 'Filtered.', status, innererror: { code: 'ResponsibleAIPolicyViolation' } }
      : {
          code: status,
          message: 'Flagged.',
          metadata: { reasons: ['violence'], flagged_input: 'Wr…', provider_name: 'x' },
        };
  const reply: Reply = (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ error }));
  };
  return ['OpenAI-likes', `status ${status}`, 'prompt_blocked', reply, reply];
}
