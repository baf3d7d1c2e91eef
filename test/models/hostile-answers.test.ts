import { expect } from 'chai';
import { executeStep } from '../../src/council/step.js';
import type { GraphNode } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { MAX_CALLS } from '../../src/models/port.js';
import type { ProviderApi } from '../../src/models/wires/wires.js';
import type { FakeServer } from '../support/fake-server.js';
import { fakeServer } from '../support/fake-server.js';
import { REQUEST, TOOLS } from '../support/model-requests.js';
import { modelAt } from '../support/provider-models.js';
import { IS_SOAK } from '../support/soak.js';

const MIB = 1024 * 1024;

/** One unit again and again between a head and a tail, of this many characters at most. */
function filled(head: string, unit: string, tail: string): (chars: number) => string {
  return (chars) => head + unit.repeat(Math.floor((chars - head.length - tail.length) / unit.length)) + tail;
}

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
const CALL = { index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } };
const withArguments = (args: string): string =>
  eventOf({ choices: [{ delta: { tool_calls: [{ ...CALL, function: { name: 'look', arguments: args } }] } }] });

/** A whole chat completion with this field of its message, filled. */
const message = (head: string, unit: string, tail: string): ((chars: number) => string) =>
  filled(`{"choices":[{"message":{"role":"assistant",${head}`, unit, `${tail}},"finish_reason":"stop"}]}`);
const text = (unit: string): ((chars: number) => string) =>
  message('"content":"', JSON.stringify(unit).slice(1, -1), '"');
const stream = (event: object): ((chars: number) => string) => filled('', eventOf(event), 'data: [DONE]\n\n');
const delta = (content: string): ((chars: number) => string) => stream({ choices: [{ delta: { content } }] });
const TOOL_USE = '{"type":"tool_use","id":"a","name":"look","input":{}}';
const BLOCK = eventOf({
  type: 'content_block_start',
  index: 0,
  content_block: { type: 'tool_use', id: 'a', name: 'look' },
});
const BLOCK_END = eventOf({ type: 'content_block_stop', index: 0 });
const CALLED = { candidates: [{ content: { parts: [{ functionCall: { name: 'look', args: {} } }] } }] };

const STOPPED = eventOf({ candidates: [{ content: { parts: [] }, finishReason: 'STOP' }] });

interface Hostile {
  readonly api: ProviderApi;
  readonly isStream: boolean;
  readonly body: (chars: number) => string;
}

const whole = (body: Hostile['body'], api: ProviderApi = 'openai'): Hostile => ({ api, isStream: false, body });
const streamed = (body: Hostile['body'], api: ProviderApi = 'openai'): Hostile => ({ api, isStream: true, body });

const ANSWERS: Readonly<Record<string, Hostile>> = {
  'tool calls': whole(message('"tool_calls":[', `${JSON.stringify(CALL)},`, `${JSON.stringify(CALL)}]`)),
  'parts of a message': whole(message('"content":[', '{"type":"text","text":"a"},', '{}]')),
  backslashes: whole(text('\\')),
  'braces that begin no object': whole(text('{"a":')),
  'objects with a comma too many': whole(text('{"a":1,}')),
  'code fences': whole(text('```json\n')),
  thoughts: whole(text('<think></think>')),
  'marks of tool calls': whole(text('<tool_call>look{')),
  brackets: whole(message('"content":', '[', '1]')),
  numbers: whole(message('"x":[', '1,', '1]')),
  objects: whole(message('"x":[', '{},', '{}]')),
  'pieces of reasoning': whole(message('"content":"a","reasoning_details":[', '{},', '{}]')),
  'a long error': whole(filled('{"error":{"message":"', 'model ', '"}}')),
  'details of an error': whole(filled('{"error":{"details":[', '{"reason":"x"},', '{}]}}')),
  'a header with a long name': whole(filled('{"error":{"metadata":{"headers":{"ratelimit-', 'reset-', '\\n":"1"}}}}')),
  'tool calls of Anthropic': whole(
    filled('{"type":"message","content":[', `${TOOL_USE},`, `${TOOL_USE}]}`),
    'anthropic',
  ),
  'tool calls of Gemini': whole(
    filled('{"candidates":[{"content":{"parts":[', '{"functionCall":{"name":"look","args":{}}},', '{}]}}]}'),
    'gemini',
  ),
  'streamed tool calls': streamed(stream({ choices: [{ delta: { tool_calls: [CALL] } }] })),
  'streamed arguments of one call': streamed(filled(withArguments('{"a":"'), withArguments('{{{'), 'data: [DONE]\n\n')),
  'streamed space': streamed(delta('   ')),
  'streamed thoughts': streamed(delta('<think></think>')),
  'streamed pieces of reasoning': streamed(stream({ choices: [{ delta: { reasoning_details: [{}] } }] })),
  'streamed usage': streamed((chars) => {
    let body = '';
    for (let at = 0; body.length < chars; at += 1) body += eventOf({ choices: [], usage: { [`k${at}`]: 1 } });
    return body;
  }),
  'empty events': streamed(filled('', 'data: {}\n\n', 'data: [DONE]\n\n')),
  'one long line': streamed(filled('data: "', 'a', '"\n\n')),
  comments: streamed(filled('', ':\n', 'data: [DONE]\n\n')),
  'line breaks of two kinds': streamed(filled('', '\n', '\r')),
  'streamed blocks of Anthropic': streamed(
    filled('', BLOCK + BLOCK_END, eventOf({ type: 'message_stop' })),
    'anthropic',
  ),
  'streamed calls of Gemini': streamed(filled('', eventOf(CALLED), STOPPED), 'gemini'),
};

describe('An answer of a hostile model server', () => {
  let server: FakeServer<unknown>;

  beforeEach(async () => {
    server = await fakeServer([]);
  });
  afterEach(() => server.stop());

  async function modelFor({ api, isStream, body }: Hostile, chars: number): Promise<LanguageModel> {
    const bytes = Buffer.from(body(chars));
    const type = isStream ? 'text/event-stream' : 'application/json';
    server.answerBy(() => (response) => response.writeHead(200, { 'Content-Type': type }).end(bytes));
    return await modelAt(api, { baseUrl: `${server.url}/v1`, apiKey: 'k', model: 'm' });
  }

  /** The milliseconds of processor time that a step takes with such an answer, and the turns that other work gets. */
  async function taken(
    hostile: Hostile,
    role: 'agent' | 'critic',
    chars: number,
  ): Promise<{ ms: number; turns: number }> {
    const model = await modelFor(hostile, chars);
    const { signal } = new AbortController();
    const node: GraphNode = {
      id: 'n',
      label: 'n',
      role,
      systemPrompt: '',
      tools: { webSearch: false, pdfReader: false },
      countsIteration: false,
      timeoutMs: 600_000,
      maxAttempts: 1,
    };
    let [turns, isOver] = [0, false];
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const before = process.cpuUsage();
    await executeStep({
      node,
      signal,
      rendered: { system: 's', prompt: 'p' },
      promptInput: { ...REQUEST.promptInput, role },
      monotonicMs: () => 0,
      ask: (request) =>
        model.ask(
          {
            ...request,
            ...(role === 'agent' && { tools: TOOLS }),
            ...(hostile.isStream && { onToken: () => undefined, onStart: () => undefined }),
          },
          { signal },
        ),
    });
    const { user, system } = process.cpuUsage(before);
    isOver = true;
    return { ms: (user + system) / 1000, turns };
  }

  for (const [name, hostile] of Object.entries(ANSWERS)) {
    it(`takes time in proportion to its length: ${name}`, async () => {
      const role = hostile.isStream ? 'agent' : 'critic';
      // The first loads the packages.
      await taken(hostile, role, 1000);
      const chars = (hostile.isStream ? MIB / 2 : MIB) / (IS_SOAK ? 1 : 4);
      // Twice as long; in proportion to the square it would be four times. A busy machine can falsify single figures.
      let times = Infinity;
      for (let tries = 0; tries < 4 && times > 2.5; tries += 1) {
        const half = await taken(hostile, role, chars / 2);
        const all = await taken(hostile, role, chars);
        times = Math.min(times, (all.ms - 250) / half.ms);
      }
      expect(times).to.be.at.most(2.5);
    });
  }

  it('lets other work go on while a stream of many events is read', async () => {
    const hostile = streamed(filled('', 'data: {"choices":[]}\n\n', 'data: [DONE]\n\n'));
    const { turns } = await taken(hostile, 'agent', MIB / 4);
    const events = MIB / 4 / 'data: {"choices":[]}\n\n'.length;
    expect(turns).to.be.greaterThan(events / 64);
  });

  it('is refused past 4 MiB, or past 400,000 values, before it is parsed', async () => {
    for (const body of [text('a')(5 * MIB), message('"x":[', '1,', '1]')(MIB)]) {
      const model = await modelFor(
        whole(() => body),
        0,
      );
      const failure = await model
        .ask(REQUEST, { signal: new AbortController().signal })
        .catch((error: unknown) => error);
      expect(failure).to.have.nested.property('data.kind', 'answer_too_large');
    }
  });

  for (const [name, api, isStream] of [
    ['tool calls', 'openai', false],
    ['streamed tool calls', 'openai', true],
    ['tool calls of Anthropic', 'anthropic', false],
    ['streamed blocks of Anthropic', 'anthropic', true],
    ['tool calls of Gemini', 'gemini', false],
    ['streamed calls of Gemini', 'gemini', true],
  ] as const) {
    it(`has ${MAX_CALLS} calls at most: ${name}`, async () => {
      const hostile = ANSWERS[name];
      if (hostile === undefined) throw new Error(`There is no answer "${name}"`);
      const model = await modelFor({ ...hostile, api, isStream }, 100_000);
      const hooks = isStream ? { onToken: () => undefined, onStart: () => undefined } : {};
      const answer = await model.ask({ ...REQUEST, ...hooks, tools: TOOLS }, { signal: new AbortController().signal });
      expect(answer.calls).to.have.length(MAX_CALLS);
      expect(new Set(answer.calls?.map(({ id }) => id)).size).to.be.within(1, MAX_CALLS);
    });
  }
});
