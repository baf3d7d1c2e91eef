import { expect } from 'chai';
import type { ModelRequest } from '../../src/models/port.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Reply, ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

const BUILT_IN = '/api/councils/run';
const SCHEMA = {
  type: 'object',
  properties: { title: { type: 'string' }, votes: { type: 'integer', minimum: 0 } },
  required: ['title', 'votes'],
  additionalProperties: false,
};
const VALUE = { votes: 3, title: 'Oaks' };

describe('The final output of a run', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;

  before(async () => {
    service = await startService({
      model: { ...scriptedModel(), ask: (request, call) => model.ask(request, call) },
      modelMaxAttempts: 1,
    });
    rest = restClient(service.url);
  });
  beforeEach(() => answerOutputs(JSON.stringify(VALUE)));
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  /** Formats answer these texts in order and repeat the last one; others answer as in `councilScript`. */
  function answerOutputs(...texts: readonly string[]): void {
    const others = councilScript([9]);
    let asked = 0;
    model = scriptedModel((request, index): Reply => {
      if (request.answer !== 'output') return others(request, index);
      asked += 1;
      return { text: texts[Math.min(asked, texts.length) - 1] ?? '' };
    });
  }
  const start = async (body: object, path = BUILT_IN): Promise<string> =>
    rest.read(await rest.post(path, { input_topic: 'Trees', ...body }), 202, 'run-start.json').run_id;
  const ended = async (body: object, path?: string) => {
    const runId = await start(body, path);
    return { runId, run: await rest.until(runId, isOver) };
  };
  const record = (runId: string) => checkRecord(service.context.log, runId);
  const graphOf = async (runId: string) => {
    const [requested] = factsOf(await record(runId), 'RunRequested');
    return { nodes: requested?.graph.nodes.map(({ id }) => id), edges: requested?.graph.edges };
  };
  const outputsAsked = (): readonly ModelRequest[] => model.requests.filter(({ answer }) => answer === 'output');
  const save = async (council: object): Promise<void> =>
    void rest.read(await rest.post('/api/councils/', { name: 'Saved', ...council }), 201, 'blueprint.json');

  it('is valid by the schema, beside the draft that reached it, in the poll, the history of one, the state and the record', async () => {
    const { runId, run } = await ended({ output_schema: SCHEMA });
    expect(run).to.deep.include({
      status: 'completed',
      final_draft: 'Draft 2 by Writer',
      final_output: VALUE,
      iteration_count: 1,
    });
    const graph = await graphOf(runId);
    expect(graph.nodes).to.deep.equal(['master_agent', 'critic_agent', 'writer_agent', 'output']);
    expect(graph.edges?.at(-1)).to.deep.include({ source: 'writer_agent', target: 'output', condition: null });
    const one = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect([one.final_draft, one.final_output]).to.deep.equal(['Draft 2 by Writer', VALUE]);
    const listed = rest.read(await rest.get('/api/runs?limit=5'), 200, 'history-list.json');
    expect(listed.find(({ id }) => id === runId)).not.to.have.property('final_output');
    const [completed] = factsOf(await record(runId), 'RunCompleted');
    expect(completed).to.deep.include({ finalDraft: 'Draft 2 by Writer', finalOutput: VALUE });
    const state = rest.read(await rest.get(`/api/runs/${runId}/state`), 200, 'folded-run.json');
    expect([state.current_draft, state.final_output]).to.deep.equal(['Draft 2 by Writer', VALUE]);
    expect(factsOf(await record(runId), 'NodeCompleted').at(-1)?.output).to.deep.equal({ draft: canonical(VALUE) });
    expect(rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json').valid).to.equal(true);
    const genealogy = rest.read(await rest.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.drafts.map(({ node }) => node)).to.deep.equal(['master_agent', 'writer_agent']);
    const [asked] = outputsAsked();
    expect(asked?.promptInput.draft).to.equal('Draft 2 by Writer');
    expect(asked?.system).to.include(JSON.stringify(SCHEMA));
  });

  it('is null without a schema', async () => {
    const { runId, run } = await ended({});
    expect(run.final_output).to.equal(null);
    expect(rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json').final_output).to.equal(null);
    expect(factsOf(await record(runId), 'RunCompleted')[0]).not.to.have.property('finalOutput');
  });

  it('is asked for again at most twice, with the errors', async () => {
    answerOutputs(
      'Here you are!',
      '{"title": "Oaks", "votes": -1}',
      `Sure:\n\`\`\`json\n${JSON.stringify(VALUE)}\n\`\`\``,
    );
    const { run } = await ended({ output_schema: SCHEMA });
    expect(run.final_output).to.deep.equal(VALUE);
    const prompts = outputsAsked().map(({ prompt }) => prompt);
    expect(prompts).to.have.lengthOf(3);
    expect(prompts[1]).to.include('it is no JSON value').and.include('Here you are!');
    expect(prompts[2]).to.include('/votes must be >= 0');
  });

  it('is found in an answer with other JSON before it, and may be null', async () => {
    for (const answer of [
      `As said in [1], the answer is ${JSON.stringify(VALUE)}.`,
      `For example {"b": 2}. The final answer: ${JSON.stringify(VALUE)}`,
      `\`\`\`json\n{"b": 2}\n\`\`\`\nor rather\n\`\`\`json\n${JSON.stringify(VALUE)}\n\`\`\``,
    ]) {
      answerOutputs(answer);
      expect((await ended({ output_schema: SCHEMA })).run.final_output, answer).to.deep.equal(VALUE);
      expect(outputsAsked()).to.have.lengthOf(1);
    }
    answerOutputs('null');
    expect((await ended({ output_schema: { type: ['object', 'null'] } })).run).to.include({
      ...{ status: 'completed', final_output: null },
    });
  });

  it('fails the run with output_invalid and keeps the draft; a fork at that point repeats only the format', async () => {
    answerOutputs('{"title": 3}');
    const { runId, run } = await ended({ output_schema: SCHEMA });
    expect(run).to.deep.include({ status: 'failed', final_output: null });
    const events = await record(runId);
    expect(factsOf(events, 'RunFailed')[0]).to.deep.include({ kind: 'output_invalid', node: 'output' });
    expect(run.error).to.include('/title must be string');
    expect(outputsAsked()).to.have.lengthOf(3);
    const state = rest.read(await rest.get(`/api/runs/${runId}/state`), 200, 'folded-run.json');
    expect(state.current_draft).to.equal('Draft 2 by Writer');
    answerOutputs(JSON.stringify(VALUE));
    const at = events.findIndex(({ type }) => type === 'NodeFailed');
    const reply = await rest.post(`/api/runs/${runId}/fork`, { at });
    const fork = rest.read(reply, 202, 'run-start.json').run_id;
    expect(await rest.until(fork, isOver)).to.deep.include({ final_draft: 'Draft 2 by Writer', final_output: VALUE });
    expect(model.requests.map(({ answer }) => answer)).to.deep.equal(['output']);
  });

  it('fails the run with output_invalid also if its model fails, or if it is too large', async () => {
    const large = { text: JSON.stringify({ ...VALUE, title: 'x'.repeat(130 * 1024) }) };
    for (const reply of [{ error: new Error('The model is tired') }, large]) {
      const others = councilScript([9]);
      model = scriptedModel((request, index) => (request.answer === 'output' ? reply : others(request, index)));
      const { runId, run } = await ended({ output_schema: SCHEMA });
      expect(run).to.include({ status: 'failed' });
      expect(factsOf(await record(runId), 'RunFailed')[0]).to.include({ kind: 'output_invalid', node: 'output' });
      const state = rest.read(await rest.get(`/api/runs/${runId}/state`), 200, 'folded-run.json');
      expect(state.current_draft).to.equal('Draft 2 by Writer');
    }
  });

  it('comes after all last nodes of a blueprint, which may name the schema; that of the start replaces it', async () => {
    const nodes = [{ id: 'output' }, { id: 'a', model: 'scripted-2' }, { id: 'b' }];
    const edges = [
      { source: 'output', target: 'a' },
      { source: 'output', target: 'b' },
    ];
    await save({ id: 'two-ends', nodes, edges, output_schema: SCHEMA });
    const { runId, run } = await ended({}, '/api/councils/two-ends/run');
    expect(run.final_output).to.deep.equal(VALUE);
    expect(run.final_draft).to.include('Draft 2 by a').and.include('Draft 3 by b');
    const graph = await graphOf(runId);
    expect(graph.nodes).to.deep.equal(['output', 'a', 'b', 'output-2']);
    expect(outputsAsked()[0]?.model).to.equal('scripted-2');
    answerOutputs('"a text"');
    const other = await ended({ output_schema: { type: 'string' } }, '/api/councils/two-ends/run');
    expect(other.run.final_output).to.equal('a text');
    const saved = rest.read(await rest.get('/api/councils/two-ends'), 200, 'blueprint.json');
    expect(saved.output_schema).to.deep.equal(SCHEMA);
    const changed = await rest.send('PUT', '/api/councils/two-ends', { body: { output_schema: null } });
    expect(rest.read(changed, 200, 'blueprint.json')).not.to.have.property('output_schema');
  });

  it('is added by a fork, also at the end of the prose, or has another schema there', async () => {
    const { runId } = await ended({});
    const at = (await record(runId)).findLastIndex(({ type }) => type === 'NodeCompleted');
    const forked = async (from: string, seq: number, schema: object) => {
      const reply = await rest.post(`/api/runs/${from}/fork`, { at: seq, changes: { output_schema: schema } });
      const fork = rest.read(reply, 202, 'run-start.json').run_id;
      return { fork, run: await rest.until(fork, isOver) };
    };
    const asked = model.requests.length;
    const { fork, run } = await forked(runId, at, SCHEMA);
    expect(run).to.deep.include({ final_draft: 'Draft 2 by Writer', final_output: VALUE });
    expect(model.requests.length - asked).to.equal(1);
    answerOutputs('[1, 2]');
    const list = { type: 'array', items: { type: 'integer' } };
    const place = (await record(fork)).findIndex(({ type }) => type === 'NodeStarted');
    const again = await forked(fork, place, list);
    expect(again.run.final_output).to.deep.equal([1, 2]);
    expect((await graphOf(again.fork)).nodes).to.have.lengthOf(4);
    const genealogy = rest.read(await rest.get(`/api/runs/${again.fork}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.parent?.changes).to.have.property('output_schema', true);
  });

  it('is the draft of a format node within a council, which counts no iteration', async () => {
    const nodes = [{ id: 'writer' }, { id: 'shape', type: 'format', schema: SCHEMA }, { id: 'reader' }];
    const edges = [
      { source: 'writer', target: 'shape' },
      { source: 'shape', target: 'reader' },
    ];
    await save({ id: 'shaped', nodes, edges });
    const { run } = await ended({}, '/api/councils/shaped/run');
    expect(run).to.deep.include({ final_draft: 'Draft 2 by reader', final_output: null, iteration_count: 2 });
    expect(model.requests.at(-1)?.promptInput.draft).to.equal(canonical(VALUE));
  });

  /** A run whose budget pays the first call of its output, and no correction. */
  const stoppedBeforeCorrection = async (onExceeded: string): Promise<string> => {
    answerOutputs('{"title": 3}', JSON.stringify(VALUE));
    await save({ id: `tight-${onExceeded}`, nodes: [{ id: 'a', maxOutputTokens: 10 }] });
    const path = `/api/councils/tight-${onExceeded}/run`;
    const probe = await start({ output_schema: SCHEMA, budget: { tokens: 3_000 } }, path);
    const { budget } = await rest.until(probe, ({ status }) => status === 'paused');
    answerOutputs('{"title": 3}', JSON.stringify(VALUE));
    const tokens = budget?.needed_tokens ?? 0;
    return await start({ output_schema: SCHEMA, budget: { tokens, on_exceeded: onExceeded } }, path);
  };

  it('waits for a larger budget between two corrections, and is asked for from its beginning then', async () => {
    const runId = await stoppedBeforeCorrection('pause');
    const paused = await rest.until(runId, ({ status }) => status === 'paused');
    expect(paused).to.include({ pause_reason: 'budget', final_output: null });
    expect(outputsAsked()).to.have.lengthOf(1);
    expect(factsOf(await record(runId), 'NodeFailed')[0]).to.include({ node: 'output', kind: 'budget_exceeded' });
    const larger = { action: 'approve', budget: { tokens: 100_000 } };
    rest.read(await rest.post(`/api/councils/run/${runId}/approve`, larger), 200, 'run-result.json');
    const run = await rest.until(runId, isOver);
    expect(run).to.deep.include({ status: 'completed', final_draft: 'Draft 1 by a', final_output: VALUE });
    // 15 tokens for the draft, for the answer that was wrong and for the one that is right.
    expect(run.budget?.spent_tokens).to.equal(45);
    expect(rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json').valid).to.equal(true);
  });

  it('is left out by a budget that finishes the run between two corrections, and its draft stays', async () => {
    const run = await rest.until(await stoppedBeforeCorrection('finish'), isOver);
    expect(run).to.deep.include({ status: 'completed', final_draft: 'Draft 1 by a', final_output: null });
    expect(outputsAsked()).to.have.lengthOf(1);
    const failed = await rest.until(await stoppedBeforeCorrection('fail'), isOver);
    expect(failed).to.include({ status: 'failed', final_draft: null });
    expect(failed.error).to.include('Stopped at the budget');
  });

  it('is sent by a trial of the offline model', async () => {
    const { run } = await ended({ nodes: [{ id: 'a' }], output_schema: SCHEMA }, '/api/councils/try');
    expect(run.final_output).to.have.keys('title', 'votes');
  });

  it('needs a schema that can be used, wherever one is sent', async () => {
    const { runId } = await ended({});
    const bad = { type: 'nothing' };
    const refused = async (send: Promise<Awaited<ReturnType<typeof rest.post>>>, loc: readonly (string | number)[]) => {
      const problem = rest.problem(await send, 422);
      expect(problem.errors?.map((each) => each.loc)).to.deep.equal([loc]);
      expect(problem.errors?.[0]?.msg).to.include('The schema cannot be used');
    };
    await refused(rest.post(BUILT_IN, { input_topic: 'x', output_schema: bad }), ['body', 'output_schema']);
    const fork = { at: 3, changes: { output_schema: bad } };
    await refused(rest.post(`/api/runs/${runId}/fork`, fork), ['body', 'changes', 'output_schema']);
    const council = { name: 'x', nodes: [{ id: 'a' }, { id: 'b', type: 'format', schema: bad }] };
    await refused(rest.post('/api/councils/', council), ['body', 'nodes', 1, 'schema']);
    await refused(rest.post('/api/councils/validate', council), ['body', 'nodes', 1, 'schema']);
    await refused(rest.post('/api/councils/try', { input_topic: 'x', ...council }), ['body', 'nodes', 1, 'schema']);
    await refused(rest.post('/api/councils/', { name: 'x', nodes: [], output_schema: bad }), ['body', 'output_schema']);
  });

  it('is refused for a format without a schema, whose runs fail and say so', async () => {
    const reply = await rest.post('/api/councils/', { id: 'bare', name: 'Bare', nodes: [{ id: 'a', type: 'format' }] });
    const saved = rest.read(reply, 201, 'blueprint.json');
    expect(saved.warnings.map(({ message }) => message)).to.deep.equal(['The format "a" has no schema']);
    const { run } = await ended({}, '/api/councils/bare/run');
    expect(run.error).to.include('The format "a" has no schema');
  });
});
