import { expect } from 'chai';
import { exactDollars } from '../../src/system/dollars.js';
import type { GraphNode, NodeCompletedData, NodeFailedData, RunBudget } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { usageOf } from '../../src/run/effort.js';
import type { RunEvent } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import { fakeAnthropic } from '../support/fake-anthropic.js';
import { calls, fakeOpenAi, refuses, says, USAGE } from '../support/fake-openai.js';
import type { Reply } from '../support/fake-server.js';
import { sends } from '../support/fake-server.js';
import { graphOf } from '../support/given.js';
import { memoryChunks } from '../support/memory-chunks.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { modelAt, openAiModel } from '../support/provider-models.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const system = { ...nodeSystem(), random: () => 0 };
const PRICE = { input_cost_per_token: 0.001, output_cost_per_token: 0.001 };
const READER: Partial<GraphNode> = {
  tools: { webSearch: false, pdfReader: true },
  timeoutMs: 10_000,
  maxOutputTokens: 100,
  maxAttempts: 1,
};
const AMPLE: RunBudget = { usd: null, tokens: 1_000_000, onExceeded: 'fail' };
const search = calls(['pdf_reader', { query: 'oaks' }]);

/** A call of a tool, beside the model's own words. */
function searchWith(words: object, usage: object = USAGE): Reply {
  const called = { id: 'c1', type: 'function', function: { name: 'pdf_reader', arguments: '{"query":"oaks"}' } };
  const message = { role: 'assistant', content: null, tool_calls: [called], ...words };
  return sends({ id: 'x', choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage });
}

/** A complete answer with a usage of its own. */
function saysFor(content: string, usage: object): Reply {
  return sends({ choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage });
}

/** Streams pieces and closes the connection before the end. */
function cutAfter(...events: readonly object[]): Reply {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    response.write(text, () => response.socket?.resetAndDestroy());
  };
}

describe('The cost of an attempt', () => {
  let dir: TempDir;
  let engine: TestEngine | null;
  let server: { stop(): Promise<void> } | null;

  beforeEach(() => {
    dir = tempDir();
    [engine, server] = [null, null];
  });
  afterEach(async () => {
    await engine?.stop();
    await server?.stop();
    dir.remove();
  });

  interface Ended {
    readonly run: RunState | undefined;
    readonly events: readonly RunEvent[];
    /** The first end of an attempt. */
    readonly end: NodeCompletedData | NodeFailedData | undefined;
  }

  const runWith = async (
    model: LanguageModel,
    {
      graph = 'plan',
      fields = READER,
      budget,
      isFollowed = false,
    }: {
      readonly graph?: string;
      readonly fields?: Partial<GraphNode>;
      readonly budget?: RunBudget;
      readonly isFollowed?: boolean;
    } = {},
  ): Promise<Ended> => {
    const chunkSearch = memoryChunks([{ filename: 'trees.pdf', pages: ['Oaks grow slowly.'] }]);
    engine ??= await openTestEngine({ path: dir.path, model, system, chunkSearch, prices: { 'model-x': PRICE } });
    const runId = system.uuid();
    if (isFollowed) engine.tokens.subscribe(runId, () => undefined);
    await engine.registry.start(runRequest(runId, { graph: graphOf(graph, fields), budget }));
    const [run] = await allFinished(engine, [runId]);
    const events = await checkRecord(engine.log, runId);
    return { run, events, end: [...factsOf(events, 'NodeCompleted'), ...factsOf(events, 'NodeFailed')][0] };
  };
  const openAi = async (replies: readonly Reply[]): Promise<LanguageModel> => {
    const fake = await fakeOpenAi(replies);
    server = fake;
    return openAiModel({ apiKey: 'k', baseUrl: fake.url, model: 'model-x' });
  };
  const anthropic = async (replies: readonly Reply[]): Promise<LanguageModel> => {
    const fake = await fakeAnthropic(replies);
    server = fake;
    return modelAt('anthropic', { apiKey: 'k', baseUrl: fake.url, model: 'model-x' });
  };
  const reservedTokens = (events: readonly RunEvent[]): readonly number[] =>
    [...factsOf(events, 'NodeStarted'), ...factsOf(events, 'CallReserved')].map(
      ({ reserved }) => reserved?.tokens ?? 0,
    );

  describe('reserves', () => {
    it('the reasoning that a chat completion sends back with its tool calls', async () => {
      const model = await openAi([searchWith({ reasoning_content: 'R'.repeat(9_000) }), says('A draft')]);
      const [first = 0, second = 0] = reservedTokens((await runWith(model, { budget: AMPLE })).events);
      expect(second - first).to.be.at.least(3_000);
    });

    it('the thoughts in tags that a chat completion sends back with its tool calls', async () => {
      const model = await openAi([searchWith({ content: `<think>${'R'.repeat(9_000)}</think>` }), says('A draft')]);
      const [first = 0, second = 0] = reservedTokens((await runWith(model, { budget: AMPLE })).events);
      expect(second - first).to.be.at.least(3_000);
    });

    it('the thinking and the signature that Anthropic gets back', async () => {
      const thought = { type: 'thinking', thinking: 'T'.repeat(6_000), signature: 'S'.repeat(3_000) };
      const called = { type: 'tool_use', id: 't1', name: 'pdf_reader', input: { query: 'oaks' } };
      const message = (content: readonly object[], stop: string): Reply =>
        sends({ type: 'message', content, stop_reason: stop, usage: { input_tokens: 1, output_tokens: 1 } });
      const model = await anthropic([
        message([thought, called], 'tool_use'),
        message([{ type: 'text', text: 'Done' }], 'end_turn'),
      ]);
      const [first = 0, second = 0] = reservedTokens((await runWith(model, { budget: AMPLE })).events);
      expect(second - first).to.be.at.least(3_000);
    });
  });

  describe('of a failed answer', () => {
    it('is what the provider reports, even without the tokens of the prompt', async () => {
      const model = await openAi([saysFor('', { completion_tokens: 9, cost: 0.3 })]);
      const { run, end } = await runWith(model, { budget: { ...AMPLE, usd: 50 } });
      expect(end).to.deep.include({ kind: 'empty_answer', costUsd: 0.3 });
      expect(end?.usage).to.include({ inputTokens: null, outputTokens: 9 });
      expect(run?.spending?.spent.usd).to.equal(exactDollars(0.3));
    });

    it('that breaks off in a stream is what the stream has reported', async () => {
      const piece = { choices: [{ index: 0, delta: { content: 'Hel' } }], usage: USAGE };
      const model = await openAi([cutAfter(piece), says('A draft')]);
      const { end } = await runWith(model, { isFollowed: true });
      expect(end).to.deep.include({ output: { draft: 'A draft' }, calls: 2 });
      expect(end?.usage).to.include({ inputTokens: 22, outputTokens: 14 });
    });

    it('that Anthropic breaks off is the prompt, and not the output', async () => {
      const model = await anthropic([
        cutAfter({ type: 'message_start', message: { usage: { input_tokens: 500, output_tokens: 1 } } }),
        refuses(500),
      ]);
      const { events } = await runWith(model, { budget: AMPLE, isFollowed: true });
      const [repeated] = factsOf(events, 'CallReserved');
      expect(repeated?.usage).to.include({ inputTokens: 500, outputTokens: null });
    });
  });

  describe('with a repeated call', () => {
    it('is unknown if the usage of one of its calls is, and all its calls are counted', async () => {
      const model = await openAi([cutAfter({ choices: [] }), says('A draft')]);
      const { run, end } = await runWith(model, { isFollowed: true });
      expect(end).to.deep.include({ output: { draft: 'A draft' }, calls: 2, costUsd: null });
      expect(end?.usage).to.include({ inputTokens: null, outputTokens: null });
      expect(run && usageOf(run.effort)).to.include({ calls: 2, toldCalls: 0, pricedCalls: 0, costUsd: null });
    });

    it('is unknown if its last call failed at the server', async () => {
      const model = await openAi([search, refuses(500)]);
      const { run, end } = await runWith(model);
      expect(end).to.include({ kind: 'server_error' }).and.not.have.any.keys('usage', 'costUsd', 'calls');
      expect(run && usageOf(run.effort)).to.include({ calls: 2, toldCalls: 0, pricedCalls: 0 });
    });

    it('counts the second question to a critic', async () => {
      const model = await openAi([says('Hm.'), says('{"score": 9, "feedback": "Fine."}')]);
      const { run, end } = await runWith(model, { graph: 'judge?', fields: { ...READER, tools: NO_TOOLS } });
      expect(end).to.deep.include({ calls: 2 });
      expect(run && usageOf(run.effort)).to.include({ calls: 2, toldCalls: 2, pricedCalls: 2 });
    });
  });

  it('is the sum of what the provider reports of some calls and the price of the others', async () => {
    const model = await openAi([searchWith({}, { ...USAGE, cost: 0.4 }), says('A draft')]);
    const { run, end } = await runWith(model);
    expect(end?.costUsd).to.be.closeTo(0.4 + 18 * 0.001, 1e-9);
    expect(run && usageOf(run.effort).costUsd).to.equal(end?.costUsd);
  });
});

const NO_TOOLS = { webSearch: false, pdfReader: false };
