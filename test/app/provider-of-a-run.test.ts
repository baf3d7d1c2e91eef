import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import type { Graph, RunEventsPage, RunFacts } from '../../src/generated/schemas.js';
import { routedModel } from '../../src/models/providers.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, says } from '../support/fake-openai.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

type Events = RunEventsPage['events'];

const PAUSED = { input_topic: 'Oaks', god_mode: true };

describe('The provider that a name means', () => {
  let dir: TempDir;
  /** A server of the company, and two that anyone may use. */
  let corp: FakeOpenAi;
  let openai: FakeOpenAi;
  let groq: FakeOpenAi;
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    dir = tempDir();
    [corp, openai, groq] = [
      await fakeOpenAi([says('by corp')]),
      await fakeOpenAi([says('by openai')]),
      await fakeOpenAi([says('by groq')]),
    ];
  });
  afterEach(async () => {
    await service.stop();
    await Promise.all([corp, openai, groq].map((server) => server.stop()));
    dir.remove();
  });

  /** Starts the service with these providers, the first one the default. */
  async function startWith(...names: readonly ('corp' | 'openai' | 'groq')[]): Promise<void> {
    const file = { corp: { api: 'openai', base_url: `${corp.url}/v1`, model: 'corp-default' } };
    const [chosen = 'offline'] = names;
    const config = readConfig(
      {
        MODEL_PROVIDER: chosen,
        ...(names.includes('openai') && { OPENAI_BASE_URL: `${openai.url}/v1`, OPENAI_MODEL: 'gpt-x' }),
        ...(names.includes('groq') && { GROQ_BASE_URL: `${groq.url}/v1`, GROQ_MODEL: 'llama-x' }),
        ...(names.includes('corp') && { PROVIDERS_FILE: '/etc/providers.json' }),
      },
      () => JSON.stringify(file),
    );
    const model = routedModel(config.providers, { ...config, system: nodeSystem() });
    service = await startService({ model, dataDir: dir.path });
    rest = restClient(service.url);
  }

  async function restartWith(...names: readonly ('corp' | 'openai' | 'groq')[]): Promise<void> {
    await service.stop();
    await startWith(...names);
  }

  async function started(nodes: readonly object[], body: object = PAUSED, council: object = {}): Promise<string> {
    const sent = { id: 'secret', name: 'Secret', nodes, ...council };
    rest.read(await rest.post('/api/councils/', sent), 201, 'blueprint.json');
    const start = await rest.post('/api/councils/secret/run', body);
    return rest.read(start, 202, 'run-start.json').run_id;
  }

  async function approve(runId: string): Promise<void> {
    await rest.until(runId, ({ status }) => status === 'paused');
    expect((await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' })).status).to.equal(200);
  }

  async function eventsOf(runId: string): Promise<Events> {
    return rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json').events;
  }

  function dataOf<T extends keyof RunFacts>(events: Events, type: T): readonly RunFacts[T][] {
    return events.filter((event) => event.type === type).map(({ data }) => data as RunFacts[T]);
  }

  async function graphOf(runId: string): Promise<Graph> {
    const [requested] = dataOf(await eventsOf(runId), 'RunRequested');
    if (requested === undefined) throw new Error('The run has no first event');
    return requested.graph;
  }

  async function failureOf(runId: string): Promise<RunFacts['NodeFailed'] | undefined> {
    let failed: readonly RunFacts['NodeFailed'][] = [];
    await untilTrue(async () => (failed = dataOf(await eventsOf(runId), 'NodeFailed')).length > 0);
    return failed[0];
  }

  it('gets no text meant for another after a restart without that one: the step waits, and says so', async () => {
    await startWith('openai', 'corp');
    const runId = await started([{ id: 'a', label: 'A', model: 'corp/model' }]);
    await restartWith('openai');
    await approve(runId);
    const failed = await failureOf(runId);
    expect(failed).to.include({ kind: 'not_configured', model: 'corp/model', retryable: true });
    expect(failed?.outageMs).to.be.greaterThan(0);
    expect(failed?.message).to.equal(
      'Cannot ask model "corp/model": provider "corp" is not configured, and no other is asked in its place',
    );
    const ready = rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
    expect(ready.models_unreachable).to.deep.equal(['corp/model']);
    const [shown] = rest.read(await rest.get('/api/providers'), 200, 'provider-list.json');
    expect(shown).to.include({ name: 'openai', state: 'unknown', detail: null });
    await restartWith('openai', 'corp');
    const run = await rest.until(runId, isOver);
    expect(run).to.include({ status: 'completed', final_draft: 'by corp' });
    expect(corp.calls.map(({ body }) => body.model)).to.deep.equal(['model']);
    expect(openai.calls).to.deep.equal([]);
  });

  it('is asked after a restart with another default, also by nodes that name no model', async () => {
    await startWith('openai', 'groq');
    const runId = await started([{ id: 'a', label: 'A' }]);
    await restartWith('groq', 'openai');
    await approve(runId);
    expect(await rest.until(runId, isOver)).to.include({ final_draft: 'by openai' });
    expect(groq.calls).to.deep.equal([]);
  });

  it('is asked after a restart with a provider of the name that stood before the slash', async () => {
    await startWith('openai');
    const runId = await started([{ id: 'a', label: 'A', model: 'groq/model' }]);
    await restartWith('openai', 'groq');
    await approve(runId);
    expect(await rest.until(runId, isOver)).to.include({ final_draft: 'by openai' });
    expect(openai.calls.map(({ body }) => body.model)).to.deep.equal(['groq/model']);
  });

  it('is recorded in the graph of a run, for nodes, members and fallbacks', async () => {
    await startWith('openai', 'corp');
    const members = ['corp', { model: 'gpt-y', fallbacks: ['corp/'] }, { id: 'plain' }];
    const nodes = [
      { id: 'panel', type: 'panel', members, fallbacks: ['corp/model', 'vendor/model'] },
      { id: 'write', label: 'Write' },
    ];
    const council = { edges: [{ source: 'panel', target: 'write' }], fallbacks: ['corp'] };
    const { nodes: recorded } = await graphOf(await started(nodes, PAUSED, council));
    expect(recorded.map(({ model, fallbacks }) => [model, fallbacks])).to.deep.equal([
      ['openai/gpt-x', ['corp/model', 'openai/vendor/model']],
      ['openai/gpt-x', ['corp/corp-default']],
    ]);
    expect(recorded[0]?.members?.map(({ model, fallbacks }) => [model, fallbacks])).to.deep.equal([
      ['corp/corp-default', undefined],
      ['openai/gpt-y', ['corp/corp-default']],
      [undefined, undefined],
    ]);
  });

  it('is recorded for the built-in council, for a model of the request, and for trials', async () => {
    await startWith('openai', 'corp');
    const modelsOf = async (path: string, body: object): Promise<readonly unknown[]> => {
      const runId = rest.read(await rest.post(path, { input_topic: 'Oaks', ...body }), 202, 'run-start.json').run_id;
      return [...new Set((await graphOf(runId)).nodes.map(({ model }) => model))];
    };
    expect(await modelsOf('/api/councils/run', {})).to.deep.equal(['openai/gpt-x']);
    expect(await modelsOf('/api/councils/run', { model: 'corp' })).to.deep.equal(['corp/corp-default']);
    const nodes = [{ id: 'a', label: 'A', model: 'corp/model' }];
    expect(await modelsOf('/api/councils/try', { nodes })).to.deep.equal(['offline/offline-1']);
  });

  it('stays that of the parent in a fork, except where the fork changes the model', async () => {
    await startWith('openai', 'corp');
    const nodes = ['a', 'b', 'c'].map((id) => ({ id, label: id, model: 'corp/model' }));
    const edges = [
      { source: 'a', target: 'b' },
      { source: 'b', target: 'c' },
    ];
    const runId = await started(nodes, PAUSED, { edges });
    await restartWith('openai');
    const changes = {
      nodes: [
        { id: 'a', model: 'corp/model', fallbacks: ['corp/model', 'groq/model'] },
        { id: 'b', model: 'corp/other' },
      ],
    };
    const forked = await rest.post(`/api/runs/${runId}/fork`, { at: 2, changes });
    const graph = await graphOf(rest.read(forked, 202, 'run-start.json').run_id);
    // The fork names "corp/model" as its parent has recorded it; "corp/other" is new, and no provider is named "corp" now.
    expect(graph.nodes.map(({ model, fallbacks }) => [model, fallbacks])).to.deep.equal([
      ['corp/model', ['corp/model', 'openai/groq/model']],
      ['openai/corp/other', undefined],
      ['corp/model', undefined],
    ]);
  });
});
