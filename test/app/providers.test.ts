import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import type { RunEventsPage, RunFacts } from '../../src/generated/schemas.js';
import { routedModel } from '../../src/models/providers.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeAnthropic } from '../support/fake-anthropic.js';
import { fakeAnthropic, says as anthropicSays } from '../support/fake-anthropic.js';
import type { FakeGemini } from '../support/fake-gemini.js';
import { fakeGemini, says as geminiSays } from '../support/fake-gemini.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, refuses, says as openAiSays } from '../support/fake-openai.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const KEYS = { openai: 'sk-canary-openai', anthropic: 'sk-canary-anthropic', gemini: 'AIza-canary-gemini' };

/** A chain of four agents, each on a provider of its own. */
const NODES = [
  { id: 'a', label: 'A', model: 'openai/gpt-x' },
  { id: 'b', label: 'B', model: 'anthropic/claude-x' },
  { id: 'c', label: 'C', model: 'gemini/gemini-x' },
  { id: 'd', label: 'D', model: 'ollama' },
];
const EDGES = [
  { id: 'ab', source: 'a', target: 'b', type: 'linear' },
  { id: 'bc', source: 'b', target: 'c', type: 'linear' },
  { id: 'cd', source: 'c', target: 'd', type: 'linear' },
];

describe('A council of many providers', () => {
  let openai: FakeOpenAi;
  let anthropic: FakeAnthropic;
  let gemini: FakeGemini;
  let ollama: FakeOpenAi;
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    [openai, ollama] = [await fakeOpenAi([openAiSays('by openai')]), await fakeOpenAi([openAiSays('by ollama')])];
    anthropic = await fakeAnthropic([anthropicSays('by anthropic')]);
    gemini = await fakeGemini([geminiSays('by gemini')]);
    const config = readConfig({
      OPENAI_API_KEY: KEYS.openai,
      OPENAI_BASE_URL: openai.url,
      OPENAI_MODEL: 'gpt-x',
      ANTHROPIC_API_KEY: KEYS.anthropic,
      ANTHROPIC_BASE_URL: `${anthropic.url}/v1/`,
      GEMINI_API_KEY: KEYS.gemini,
      GEMINI_BASE_URL: gemini.url,
      OLLAMA_BASE_URL: `${ollama.url}/v1`,
      OLLAMA_MODEL: 'llama-x',
    });
    const model = routedModel(config.providers, { ...config, system: nodeSystem() });
    service = await startService({ model, modelOutageMs: 0 });
    rest = restClient(service.url);
  });
  afterEach(async () => {
    await service.stop();
    await Promise.all([openai, anthropic, gemini, ollama].map((server) => server.stop()));
  });

  async function run(nodes: readonly object[], edges: readonly object[] = EDGES): Promise<RunEventsPage['events']> {
    rest.read(await rest.post('/api/councils/', { id: 'many', name: 'Many', nodes, edges }), 201, 'blueprint.json');
    const started = await rest.post('/api/councils/many/run', { input_topic: 'Oaks' });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    await rest.until(runId, isOver);
    return rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json').events;
  }

  function dataOf<T extends keyof RunFacts>(events: RunEventsPage['events'], type: T): readonly RunFacts[T][] {
    return events.filter((event) => event.type === type).map(({ data }) => data as RunFacts[T]);
  }

  it('asks each by its own API, and sends each its own key and no other', async () => {
    const events = await run(NODES);
    expect(dataOf(events, 'RunCompleted')[0]?.finalDraft).to.equal('by ollama');
    const names = ['openai/gpt-x', 'anthropic/claude-x', 'gemini/gemini-x', 'ollama/llama-x'];
    expect(dataOf(events, 'NodeStarted').map(({ model }) => model)).to.deep.equal(names);
    expect(dataOf(events, 'NodeCompleted').map(({ model }) => model)).to.deep.equal(names);
    const servers = { openai, anthropic, gemini, ollama };
    const paths = Object.values(servers).map(({ calls }) => calls.map(({ path }) => path));
    expect(paths).to.deep.equal([
      ['/v1/chat/completions'],
      ['/v1/messages'],
      ['/v1beta/models/gemini-x:generateContent'],
      ['/v1/chat/completions'],
    ]);
    for (const [name, { calls }] of Object.entries(servers)) {
      const sent = JSON.stringify(calls.map(({ headers, body }) => [headers, body]));
      for (const [owner, key] of Object.entries(KEYS))
        expect(sent.includes(key), `${owner}'s key to ${name}`).to.equal(owner === name);
    }
    const shown = JSON.stringify([events, service.lines, service.faults]);
    for (const key of Object.values(KEYS)) expect(shown).not.to.include(key);
  });

  it('shows and records nothing of a key that its server quotes masked', async () => {
    const { calls, answerBy } = openai;
    answerBy([refuses(401, { message: 'Incorrect API key provided: sk-c****enai. Find yours at x.' })]);
    const events = await run([{ id: 'a', label: 'A', model: 'openai/gpt-x' }], []);
    expect(calls).to.have.length(1);
    expect(JSON.stringify(dataOf(events, 'NodeFailed'))).to.include('Incorrect API key provided: … Find yours at x.');
    const providers = (await rest.get('/api/providers')).text;
    expect(providers).to.include('Incorrect API key provided: … Find yours');
    expect(JSON.stringify([events, providers, service.lines, service.faults])).to.not.match(/sk-c|enai\./);
  });

  for (const [model, said] of [
    ['antropic/claude-x', 'no provider named "antropic" is configured; sent as model "antropic/claude-x" to provider'],
    ['gemini-y', null],
    ['gemini/gemini-y', null],
    ['openai/gpt-y', null],
  ] as const) {
    it(`${said === null ? 'says nothing of providers' : 'names the missing provider'} when the server refuses model ${model}`, async () => {
      for (const server of [gemini, openai]) server.answerBy([(response) => response.writeHead(404).end('{}')]);
      const [failed] = dataOf(await run([{ id: 'a', label: 'A', model }], []), 'NodeFailed');
      expect(failed?.message)
        .to.include(said ?? '404')
        .and.match(said === null ? /^(?!.*no provider)/ : /"gemini"/);
    });
  }

  it('warns at save of models whose built-in provider is not configured, and of no other', async () => {
    const models = ['groq', 'groq/llama-x', 'antropic/claude-x', 'models/gemini-x', 'ollama'];
    const nodes = models.map((model, index) => ({ id: `n${index}`, label: 'N', model }));
    const edges = nodes.slice(1).map(({ id }, index) => ({ source: `n${index}`, target: id }));
    const saved = await rest.post('/api/councils/', { id: 'w', name: 'W', nodes, edges, fallbacks: ['xai/grok'] });
    const { warnings } = rest.read(saved, 201, 'blueprint.json');
    const said = (provider: string, model: string, by: string): string =>
      `No provider named "${provider}" is configured: runs send model "${model}" to provider "gemini"${by}`;
    expect(warnings.filter(({ path }) => /model|fallback/.test(path)).map(({ message }) => message)).to.deep.equal([
      said('xai', 'xai/grok', ''),
      said('groq', 'groq', ' for node "n0"'),
      said('groq', 'groq/llama-x', ' for node "n1"'),
    ]);
  });

  it('follows no redirect with a key', async () => {
    for (const server of [openai, anthropic, gemini]) {
      server.answerBy([(response) => response.writeHead(307, { Location: `${ollama.url}/v1/trap` }).end()]);
    }
    for (const node of NODES.slice(0, 3)) {
      rest.read(await rest.post('/api/councils/', { id: node.id, name: 'One', nodes: [node] }), 201, 'blueprint.json');
      const started = await rest.post(`/api/councils/${node.id}/run`, { input_topic: 'Oaks' });
      const { run_id: runId } = rest.read(started, 202, 'run-start.json');
      expect((await rest.until(runId, isOver)).error).to.include('redirect');
    }
    expect(ollama.calls).to.deep.equal([]);
  });

  it('records that a model cannot be reached, and what answered in its place', async () => {
    await anthropic.goAway();
    gemini.answerBy([(response) => response.writeHead(401).end('{}')]);
    const fallbacks = ['gemini/gemini-x', 'ollama/llama-x'];
    const [first, second, , last] = NODES;
    const edges = [EDGES[0] ?? {}, { id: 'bd', source: 'b', target: 'd', type: 'linear' }];
    const events = await run([first ?? {}, { ...second, fallbacks, maxAttempts: 1 }, last ?? {}], edges);
    const failed = dataOf(events, 'NodeFailed').map(({ model, kind, fallbackTo }) => [model, kind, fallbackTo]);
    expect(failed).to.deep.equal([
      ['anthropic/claude-x', 'connection_refused', 'gemini/gemini-x'],
      ['gemini/gemini-x', 'unauthorized', 'ollama/llama-x'],
    ]);
    expect(dataOf(events, 'NodeCompleted')[1]).to.include({ node: 'b', model: 'ollama/llama-x' });
  });

  it('records what was dropped, and what a call cost', async () => {
    openai.answerBy(({ body }) =>
      body.temperature === undefined ? openAiSays('x') : refuses(400, { message: 'temperature' }),
    );
    const node = { id: 'a', label: 'A', model: 'openai/gpt-5.4', temperature: 0.2 };
    rest.read(await rest.post('/api/councils/', { id: 'one', name: 'One', nodes: [node] }), 201, 'blueprint.json');
    const started = await rest.post('/api/councils/one/run', { input_topic: 'Oaks' });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    await rest.until(runId, isOver);
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const [completed] = dataOf(events, 'NodeCompleted');
    expect(completed?.dropped).to.deep.equal(['temperature']);
    // 11 tokens in at 2.5 dollars a million, 7 out at 15.
    const costUsd = (11 * 2.5 + 7 * 15) / 1e6;
    expect(completed?.costUsd).to.be.closeTo(costUsd, 1e-12);
    expect(dataOf(events, 'RunRequested')[0]?.pricesHash).to.match(/^[0-9a-f]{64}$/);
    const { usage } = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(usage?.cost_usd).to.be.closeTo(costUsd, 1e-12);
    expect(usage).to.include({ calls: 1, unpriced_calls: 0, unmetered_calls: 0 });
    expect(usage?.by_model.map(({ model, cost_usd: cost }) => [model, cost])).to.deep.equal([
      ['openai/gpt-5.4', usage?.cost_usd],
    ]);
  });

  it('shows the cost of a run without the calls that have no price', async () => {
    const nodes = [
      { id: 'a', label: 'A', model: 'openai/gpt-5.4' },
      { id: 'b', label: 'B', model: 'openai/of-unknown-price' },
      { id: 'c', label: 'C', model: 'offline' },
    ];
    const edges = [
      { source: 'a', target: 'b' },
      { source: 'b', target: 'c' },
    ];
    rest.read(await rest.post('/api/councils/', { id: 'mixed', name: 'Mixed', nodes, edges }), 201, 'blueprint.json');
    const started = await rest.post('/api/councils/mixed/run', { input_topic: 'Oaks' });
    const { usage } = await rest.until(rest.read(started, 202, 'run-start.json').run_id, isOver);
    expect(usage).to.include({ calls: 3, unmetered_calls: 0, unpriced_calls: 1 });
    const costs = usage?.by_model.map((each) => [each.model, each.cost_usd, each.unpriced_calls]);
    expect(costs).to.deep.equal([
      ['openai/gpt-5.4', usage?.cost_usd, 0],
      ['openai/of-unknown-price', null, 1],
      ['offline/offline-1', 0, 0],
    ]);
  });
});
