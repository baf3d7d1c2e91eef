import { expect } from 'chai';
import type { ForkPlan, GraphNode } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { runStream } from '../../src/run/events.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import type { Script, ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';
import { graphOf } from '../support/given.js';
import { runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';

describe('POST /api/runs/{run_id}/fork', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  const house = sharedService();

  const serve = async (script: Script): Promise<void> => {
    model = scriptedModel(script);
    service = await house.serve(model);
    rest = restClient(service.url);
  };
  /** A finished run of the fixed council: two drafts, the second approved. */
  const finished = async (): Promise<string> => {
    const runId = await rest.start();
    await rest.until(runId, isOver);
    return runId;
  };
  const record = (runId: string): Promise<readonly RunEvent[]> => checkRecord(service.context.log, runId);
  /** The revision of the n-th event of a type in the run, counted from 1. */
  const seqOf = async (runId: string, type: RunEvent['type'], count: number): Promise<number> =>
    (await record(runId)).filter((event) => event.type === type)[count - 1]?.seq ?? -1;
  const forkPath = (runId: string): string => `/api/runs/${runId}/fork`;
  const fork = async (runId: string, at: number, changes?: object | null): Promise<string> => {
    const reply = await rest.post(forkPath(runId), { at, ...(changes !== undefined && { changes }) });
    return rest.read(reply, 202, 'run-start.json').run_id;
  };
  const dryRun = async (runId: string, at: number, changes?: object): Promise<ForkPlan> =>
    rest.read(await rest.post(`${forkPath(runId)}?dry_run=1`, { at, changes }), 200, 'fork-plan.json');
  /** The steps for which a run has called its model. */
  const called = async (runId: string): Promise<readonly string[]> =>
    factsOf(await record(runId), 'NodeStarted').map(({ node, step }) => `${node} ${step}`);

  it('continues from the middle of a finished run with its results, to a different end', async () => {
    await serve(councilScript([5, 9]));
    const parent = await finished();
    const before = await textOf(parent);
    const at = await seqOf(parent, 'NodeCompleted', 2);
    const runId = await fork(parent, at);
    const run = await rest.until(runId, isOver);
    expect(run).to.deep.include({ status: 'completed', iteration_count: 2, critic_score: 9 });
    expect(await called(runId)).to.deep.equal(['master_agent 3', 'critic_agent 4', 'writer_agent 5']);
    const [requested] = factsOf(await record(runId), 'RunRequested');
    const hash = (await record(parent))[at]?.hash;
    expect(requested?.parent).to.deep.equal({ runId: parent, at, hash });
    expect(requested?.graphHash).to.equal(factsOf(await record(parent), 'RunRequested')[0]?.graphHash);
    expect(await textOf(parent)).to.equal(before);
  });

  it('previews the fork and starts nothing with dry_run', async () => {
    await serve(councilScript([5, 9]));
    const parent = await finished();
    const runs = async (): Promise<string> => (await rest.get('/api/runs/')).text;
    const [before, calls] = [await runs(), model.requests.length];
    const judged = await seqOf(parent, 'NodeCompleted', 2);
    expect(await dryRun(parent, judged)).to.deep.equal({
      reused_results: 2,
      new_calls_at_least: 1,
      next_nodes: ['master_agent'],
    });
    expect(await dryRun(parent, judged, { modified_state: { critic_score: 8 } })).to.deep.include({
      reused_results: 2,
      next_nodes: ['writer_agent'],
    });
    expect(await dryRun(parent, 0)).to.deep.include({ reused_results: 0, next_nodes: ['master_agent'] });
    const last = await seqOf(parent, 'NodeCompleted', 5);
    expect(await dryRun(parent, last)).to.deep.equal({ reused_results: 5, new_calls_at_least: 0, next_nodes: [] });
    expect(await runs()).to.equal(before);
    expect(model.requests).to.have.length(calls);
  });

  it('accepts 1 and true as dry_run, and starts a run for 0 and false', async () => {
    await serve(councilScript([9]));
    const parent = await finished();
    const ask = (query: string) => rest.post(`${forkPath(parent)}?${query}`, { at: 0 });
    for (const word of ['1', 'true']) rest.read(await ask(`dry_run=${word}`), 200, 'fork-plan.json');
    for (const word of ['0', 'false']) rest.read(await ask(`dry_run=${word}`), 202, 'run-start.json');
    for (const query of ['dry_run=2', 'dry_run=yes', 'dry_run=', 'dry_run=1&dry_run=1']) {
      const { errors } = rest.problem(await ask(query), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['query', 'dry_run']);
    }
  });

  it('treats nulls as absent, and ignores a field named __proto__', async () => {
    await serve(councilScript([9]));
    const parent = await finished();
    const nothing = { label: null, model: null, tools: { webSearch: null }, temperature: null };
    for (const changes of [
      null,
      { input_topic: null, modified_state: null, nodes: null },
      { nodes: [{ id: 'writer_agent', ...nothing }] },
      Object.fromEntries([['__proto__', { input_topic: 7 }]]),
      {
        nodes: [
          Object.fromEntries<unknown>([
            ['id', 'writer_agent'],
            ['__proto__', { label: 7 }],
          ]),
        ],
      },
    ]) {
      const runId = await fork(parent, 0, changes);
      await rest.until(runId, isOver);
      const [mine] = factsOf(await record(runId), 'RunRequested');
      const [its] = factsOf(await record(parent), 'RunRequested');
      expect(mine).to.deep.include({ inputTopic: its?.inputTopic, graph: its?.graph });
      expect(mine?.changes).to.deep.include({ inputTopic: false, state: [] });
    }
  });

  it('accepts another topic and other prompts, and the history shows them', async () => {
    await serve(councilScript([9]));
    const parent = await finished();
    const nodes = [{ id: 'writer_agent', systemPrompt: 'Write in verse.', model: 'poet-1', position: { x: 1, y: 2 } }];
    const runId = await fork(parent, await seqOf(parent, 'NodeCompleted', 2), { input_topic: 'Shrubs', nodes });
    await rest.until(runId, isOver);
    const { promptInput } = model.requests.at(-1) ?? {};
    expect(promptInput).to.deep.include({ topic: 'Shrubs', systemPrompt: 'Write in verse.' });
    const [requested] = factsOf(await record(runId), 'RunRequested');
    const changed = requested?.graph.nodes.find((node: GraphNode) => node.id === 'writer_agent');
    expect(changed).to.include({ model: 'poet-1' }).and.not.have.property('position');
    const fields = ['systemPrompt', 'model'];
    expect(requested?.changes).to.deep.equal({ inputTopic: true, state: [], nodes: [{ id: 'writer_agent', fields }] });
    const kept = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(kept).to.include({ input_topic: 'Shrubs', status: 'completed', blueprint_id: null });
  });

  it('refuses broken rules, the end of a run, positions past it, and overrides without a route', async () => {
    await serve(councilScript([9]));
    const parent = await finished();
    const head = (await record(parent)).length - 1;
    const nodes = (...list: readonly object[]): object => ({ at: 0, changes: { nodes: list } });
    const cases: readonly (readonly [unknown, ...(string | number)[]])[] = [
      [{}, 'at'],
      [{ at: -1 }, 'at'],
      [{ at: head }, 'at'],
      [{ at: head + 1 }, 'at'],
      [{ at: 0, changes: { input_topic: '' } }, 'changes', 'input_topic'],
      [{ at: 0, changes: { modified_state: { colour: 1 } } }, 'changes', 'modified_state', 'colour'],
      [nodes({ label: 'x' }), 'changes', 'nodes', 0, 'id'],
      [nodes({ id: 'nobody' }), 'changes', 'nodes', 0, 'id'],
      [nodes({ id: 'writer_agent' }, { id: 'writer_agent' }), 'changes', 'nodes', 1, 'id'],
      [nodes({ id: 'writer_agent', temperature: 3 }), 'changes', 'nodes', 0, 'temperature'],
      [nodes({ id: 'writer_agent', label: 'Writer\n## Critic' }), 'changes', 'nodes', 0, 'label'],
    ];
    for (const [body, ...loc] of cases) {
      for (const query of ['', '?dry_run=1']) {
        const { errors } = rest.problem(await rest.post(forkPath(parent) + query, body), 422);
        expect(errors?.[0]?.loc, JSON.stringify(body)).to.deep.equal(['body', ...loc]);
      }
    }
    const critic = await seqOf(parent, 'NodeCompleted', 2);
    const nowhere = { at: critic, changes: { modified_state: { route_decision: null } } };
    expect(rest.problem(await rest.post(forkPath(parent), nowhere), 422).detail).to.include('critic_agent');
    rest.problem(await rest.post(`${forkPath(parent)}?dry_run=2`, { at: 0 }), 422);
    const large = { at: 0, changes: { modified_state: { current_draft: 'x'.repeat(300_000) } } };
    rest.problem(await rest.post(forkPath(parent), large), 413);
  });

  it("continues at its parent's limit of node executions only if it raises the limit", async () => {
    await serve(() => ({ text: 'Again' }));
    const parent = '00000000-0000-4000-8000-00000000000c';
    const requested = runRequest(parent, { graph: graphOf('a -> b; b -> a') });
    const limits = { ...requested.limits, maxNodeExecutions: 4 };
    await service.context.registry.start({ ...requested, limits });
    expect((await rest.until(parent, isOver)).error).to.include('limit of 4');
    const at = await seqOf(parent, 'NodeCompleted', 4);
    for (const query of ['', '?dry_run=1']) {
      for (const changes of [undefined, { max_node_executions: 3 }]) {
        const { errors } = rest.problem(await rest.post(forkPath(parent) + query, { at, changes }), 422);
        expect(errors?.[0]).to.deep.include({ loc: ['body', 'at'], type: 'execution_limit' });
        expect(errors?.[0]?.msg)
          .to.include('4 node executions')
          .and.to.include('max_node_executions')
          .and.include('500');
      }
      for (const [value, type] of [
        [501, 'less_than_equal'],
        [6001, 'less_than_equal'],
        [0, 'greater_than_equal'],
        [4.5, 'int_type'],
      ] as const) {
        const changes = { max_node_executions: value };
        const { errors } = rest.problem(await rest.post(forkPath(parent) + query, { at, changes }), 422);
        expect(errors?.[0]).to.deep.include({ loc: ['body', 'changes', 'max_node_executions'], type });
      }
    }
    expect(await dryRun(parent, at, { max_node_executions: 500 })).to.deep.include({ next_nodes: ['a'] });
    const runId = await fork(parent, at, { max_node_executions: 6 });
    expect((await rest.until(runId, isOver)).error).to.include('limit of 6');
    expect(await called(runId)).to.deep.equal(['a 5', 'b 6']);
    const genealogy = rest.read(await rest.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.parent?.changes).to.include({ max_node_executions: true });
    const earlier = await fork(parent, await seqOf(parent, 'NodeCompleted', 3));
    expect((await rest.until(earlier, isOver)).error).to.include('limit of 4');
  });

  it('refuses to fork a run that could not start, and names the fault of its blueprint', async () => {
    await serve(councilScript([9]));
    const edges = [{ source: 'a', target: 'nowhere' }];
    for (const [id, council, fault] of [
      ['empty', { nodes: [] }, 'no nodes'],
      ['loose', { nodes: [{ id: 'a' }], edges }, '"nowhere"'],
    ] as const) {
      rest.read(await rest.post('/api/councils', { id, name: id, ...council }), 201, 'blueprint.json');
      const started = await rest.post(`/api/councils/${id}/run`, { input_topic: 'x' });
      const parent = rest.read(started, 202, 'run-start.json').run_id;
      await rest.until(parent, isOver);
      for (const query of ['', '?dry_run=1']) {
        const { errors } = rest.problem(await rest.post(forkPath(parent) + query, { at: 0 }), 422);
        expect(errors?.[0]).to.deep.include({ loc: ['body', 'at'], type: 'no_fork_point' });
        expect(errors?.[0]?.msg).to.include(fault);
      }
    }
    expect(service.faults).to.deep.equal([]);
  });

  it('answers 404 naming the id of an unknown run, after the fields are checked', async () => {
    await serve(councilScript([9]));
    for (const id of [NO_RUN, 'nothing']) {
      expect(rest.problem(await rest.post(forkPath(id), { at: 3 }), 404).detail).to.include(id);
      rest.problem(await rest.post(forkPath(id), { at: 'x' }), 422);
    }
  });

  it('answers 500 for a corrupt run, wherever it is corrupt', async () => {
    await serve(councilScript([9]));
    const parent = await finished();
    const last = (await record(parent)).length - 1;
    const forged = { id: '00000000-0000-4000-8000-0000000000ff', type: 'RunReleased', data: '{}', metadata: {} };
    await service.context.log.append(runStream(parent), [forged], last);
    expect(rest.problem(await rest.post(forkPath(parent), { at: 1 }), 500).detail).to.include('damaged');
  });

  it('refuses a fork whose first event would exceed the size limit', async () => {
    const graph = graphOf('plan -> a, b, c, d, e, f, g, h, i; a, b, c, d, e, f, g, h, i -> meet');
    await serve(({ promptInput }) => ({ text: promptInput.label.repeat(promptInput.label === 'Plan' ? 1 : 120_000) }));
    const parent = '00000000-0000-4000-8000-00000000000b';
    await service.context.registry.start(runRequest(parent, { graph }));
    await rest.until(parent, isOver);
    const at = await seqOf(parent, 'NodeCompleted', 10);
    for (const query of ['', '?dry_run=1']) {
      expect(rest.problem(await rest.post(forkPath(parent) + query, { at }), 422).detail).to.include('too large');
    }
    await rest.until(await fork(parent, await seqOf(parent, 'NodeCompleted', 3)), isOver);
  });

  async function textOf(runId: string): Promise<string> {
    return (await rest.get(`/api/runs/${runId}/events?limit=1000`)).text;
  }
});
