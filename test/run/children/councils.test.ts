import { expect } from 'chai';
import type { BlueprintCreate, RunResult } from '../../../src/generated/schemas.js';
import { CHAPTER, OUTLINE, holding, report, script } from '../../support/council-of-chapters.js';
import { approvePath } from '../../support/god-run.js';
import type { LanguageModel } from '../../../src/models/port.js';
import type { RestClient } from '../../support/rest-client.js';
import { isOver, restClient } from '../../support/rest-client.js';
import { checkRecord, factsOf, recordOf } from '../../support/record-of.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';
import type { ScriptedModel } from '../../support/scripted-model.js';
import { scriptedModel } from '../../support/scripted-model.js';
import { tempDir } from '../../support/temp-dir.js';
import { untilTrue } from '../../support/until-true.js';

describe('A council in a council', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;

  async function serve(choose = script, options: Parameters<typeof startService>[0] = {}): Promise<void> {
    model = scriptedModel(choose);
    service = await startService({ model, ...options });
    rest = restClient(service.url);
  }

  async function save(...blueprints: readonly BlueprintCreate[]): Promise<void> {
    for (const body of blueprints) rest.read(await rest.post('/api/councils/', body), 201, 'blueprint.json');
  }

  async function start(body: object = {}, id = 'report'): Promise<string> {
    const reply = await rest.post(`/api/councils/${id}/run`, { input_topic: 'Trees', ...body });
    return rest.read(reply, 202, 'run-start.json').run_id;
  }

  const ended = (runId: string): Promise<RunResult> => rest.until(runId, isOver);
  const eventsOf = (runId: string) => checkRecord(service.context.log, runId);

  async function childrenOf(runId: string): Promise<readonly string[]> {
    return factsOf(await recordOf(service.context.log, runId), 'ChildStarted').map(({ child }) => child);
  }

  async function listed(query: string): Promise<readonly string[]> {
    const runs = rest.read(await rest.get(`/api/runs/?${query}`), 200, 'history-list.json');
    return runs.map(({ id }) => id);
  }

  afterEach(() => service.stop());

  it('has a run for each item, and joins their drafts under the titles', async () => {
    await serve();
    await save(CHAPTER, report());
    const run = await ended(await start());
    expect(run.final_draft).to.equal('## One\n<Trees|One>\n\n## Two\n<Trees|Two>\n\n## Three\n<Trees|Three>');
    const events = await eventsOf(run.run_id);
    const started = factsOf(events, 'ChildStarted');
    expect(started.map(({ index, title }) => [index, title])).to.deep.equal([
      [0, 'One'],
      [1, 'Two'],
      [2, 'Three'],
    ]);
    for (const { child, headHash, index, output } of factsOf(events, 'ChildEnded')) {
      expect(child)
        .to.equal(started[index]?.child)
        .and.match(/^.{14}5/);
      const record = await eventsOf(child);
      const [request] = factsOf(record, 'RunRequested');
      expect(request?.parentRun).to.deep.include({ runId: run.run_id, node: 'chapters', step: 2, index });
      expect(record.at(-1)?.hash).to.equal(headHash);
      expect(factsOf(record, 'RunCompleted')[0]?.finalDraft).to.equal(output);
    }
  });

  it('counts the calls and the cost of its runs', async () => {
    await serve();
    await save(CHAPTER, report());
    const run = await ended(await start());
    expect(run.usage?.calls).to.equal(model.requests.length).and.equal(5);
    const overview = rest.read(await rest.get('/api/overview'), 200, 'overview.json');
    expect(JSON.stringify(overview)).to.include('"calls":5').and.not.include('"calls":1,');
  });

  it('lists its runs by their parent, and leaves them out otherwise', async () => {
    await serve();
    await save(CHAPTER, report());
    const run = await ended(await start());
    const children = await childrenOf(run.run_id);
    expect(await listed('')).to.deep.equal([run.run_id]);
    expect(await listed(`parent_run=${run.run_id}`)).to.have.members(children);
    expect(await listed('children=1')).to.have.members([run.run_id, ...children]);
    const [first = ''] = children;
    const { parent_run: parent } = await rest.poll(first);
    const named = { run_id: run.run_id, node: 'chapters', step: 2, index: 0, title: 'One' };
    expect(parent).to.deep.equal(named);
    const genealogy = rest.read(await rest.get(`/api/runs/${first}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.parent_run).to.deep.equal(named);
    const table = await fetch(`${service.url}/api/runs/export?format=csv&parent_run=${run.run_id}`);
    const [head = '', ...rows] = (await table.text()).trim().split('\r\n');
    expect(head.split(',').slice(-2)).to.deep.equal(['parent_run', 'parent_run_title']);
    expect(rows.map((row) => row.split(',').slice(-2)).toSorted()).to.deep.equal(
      ['One', 'Three', 'Two'].map((title) => [run.run_id, title]),
    );
  });

  it('renders the topics of its runs, which then have no material', async () => {
    await serve();
    await save(CHAPTER, report({ topic: '{{ index }} of {{topic}}: {{item}} {{draft}} {{else}}' }));
    const run = await ended(await start({ input_topic: '{{item}}' }));
    expect(run.final_draft).to.include(`## Two\n<1 of {{item}}: Two ${OUTLINE} {{else}}|>`);
  });

  it('runs once without items, on the draft', async () => {
    await serve();
    await save(CHAPTER, report({ for_each: undefined }));
    const run = await ended(await start());
    expect(run.final_draft).to.equal(`<Trees|${OUTLINE}>`);
  });

  it('runs on the answers of a panel, and the next node reads its draft', async () => {
    await serve((request, index) =>
      request.promptInput.label === 'outline' ? { text: 'An answer' } : script(request, index),
    );
    const { nodes, ...others } = report({ for_each: 'headings' });
    const panel: BlueprintCreate['nodes'][0] = {
      id: 'outline',
      type: 'panel',
      members: [{ id: 'ann' }, { id: 'bob' }],
    };
    await save(CHAPTER, { ...others, nodes: [panel, ...nodes.slice(1)] });
    const run = await ended(await start());
    expect(run.error ?? run.final_draft).to.equal(
      '## ann\n<Trees|## ann\nAn answer>\n\n## bob\n<Trees|## bob\nAn answer>',
    );
    await eventsOf(run.run_id);
  });

  it('keeps the draft if it holds no item', async () => {
    await serve(({ promptInput: { label } }) => ({ text: label === 'Outline' ? 'No heading' : 'Edited' }));
    await save(CHAPTER, report({ for_each: 'headings' }));
    const run = await ended(await start());
    expect(run.final_draft).to.equal('Edited');
    expect(model.requests.at(-1)?.promptInput.draft).to.equal('No heading');
    expect(await childrenOf(run.run_id)).to.deep.equal([]);
  });

  it('fails for a draft that is no JSON, and for more than 200 items', async () => {
    let outline = 'prose';
    await serve((request, index) =>
      request.promptInput.label === 'Outline' ? { text: outline } : script(request, index),
    );
    await save(CHAPTER, report({ for_each: 'json' }));
    expect((await ended(await start())).error).to.equal('Node "chapters": The draft is no JSON array');
    outline = JSON.stringify(Array.from({ length: 201 }, String));
    expect((await ended(await start())).error).to.equal('Node "chapters": 201 items are more than 200');
    outline = JSON.stringify([{ title: 'A' }, 'B']);
    expect((await ended(await start())).final_draft).to.equal('## A\n<Trees|{"title":"A"}>\n\n## B\n<Trees|B>');
  });

  it('has at most `max_parallel` runs at a time, and starts the next when one ends', async () => {
    await serve(holding(() => true));
    await save(CHAPTER, report({ max_parallel: 2 }));
    const runId = await start();
    await model.called(3);
    expect(await childrenOf(runId)).to.have.length(2);
    model.held[1]?.release('second');
    await model.called(4);
    expect(factsOf(await eventsOf(runId), 'ChildStarted').map(({ index }) => index)).to.deep.equal([0, 1, 2]);
    while (model.held.length > 0) model.held[0]?.release('other');
    expect((await ended(runId)).final_draft).to.equal('## One\nother\n\n## Two\nsecond\n\n## Three\nother');
  });

  it('fails with its first run that fails, and cancels the others', async () => {
    await serve((request, index) => {
      if (request.promptInput.material === 'Two') return { error: new Error('no answer') };
      return holding((material) => material === 'Three')(request, index);
    });
    await save(CHAPTER, report());
    const run = await ended(await start());
    expect(run.error).to.match(/^Node "chapters": Run 1 \("Two"\) failed: Node "write": no answer$/);
    for (const child of await childrenOf(run.run_id)) expect((await ended(child)).run_id).to.equal(child);
    expect(
      (await Promise.all((await childrenOf(run.run_id)).map(rest.poll))).map(({ status }) => status),
    ).to.deep.equal(['completed', 'failed', 'failed']);
  });

  it('leaves out and names a run that fails, if it says so', async () => {
    await serve((request, index) =>
      request.promptInput.material === 'Two' ? { error: new Error('no answer') } : script(request, index),
    );
    await save(CHAPTER, report({ on_error: 'skip' }));
    const run = await ended(await start());
    expect(run.final_draft).to.equal(
      '## One\n<Trees|One>\n\n## Three\n<Trees|Three>\n\nLeft out, because their runs failed: Run 1 ("Two").',
    );
  });

  it('is cancelled with its runs, which cannot be cancelled alone', async () => {
    await serve(holding(() => true));
    await save(CHAPTER, report());
    const runId = await start();
    await model.called(4);
    const children = await childrenOf(runId);
    const problem = rest.problem(await rest.post(`/api/councils/run/${children[0]}/cancel`), 409);
    expect(problem.detail).to.include(runId);
    await rest.post(`/api/councils/run/${runId}/cancel`);
    const error = 'Cancelled with its parent run: Cancelled by the user';
    for (const child of children) expect((await ended(child)).error).to.equal(error);
    expect((await ended(runId)).error).to.equal('Cancelled by the user');
  });

  it('is in God Mode only with its parent, which runs on while it waits', async () => {
    await serve();
    await save(CHAPTER, report({ max_parallel: 1 }));
    const runId = await start({ god_mode: true });
    const paused = (id: string): Promise<RunResult> => rest.until(id, (run) => run.paused === true || isOver(run));
    const approve = async (id: string): Promise<unknown> =>
      rest.read(await rest.post(approvePath(id), { action: 'approve' }), 200, 'run-result.json');
    await paused(runId);
    await approve(runId);
    await paused(runId);
    await approve(runId);
    for (const at of [0, 1, 2]) {
      await untilTrue(async () => (await listed(`parent_run=${runId}`)).length > at);
      const child = (await childrenOf(runId))[at] ?? '';
      await paused(child);
      expect((await rest.poll(runId)).status).to.equal('running');
      const approvals = rest.read(await rest.get('/api/approvals'), 200, 'approval-list.json');
      expect(approvals.map(({ run_id: id, parent_run: parent }) => [id, parent?.run_id])).to.deep.equal([
        [child, runId],
      ]);
      await approve(child);
    }
    await paused(runId);
    expect((await rest.poll(runId)).next_nodes).to.deep.equal(['edit']);
  });

  it('goes on after a restart: runs that have ended are not repeated', async () => {
    const dir = tempDir();
    await serve(
      holding((material) => material !== 'One'),
      { dataDir: dir.path },
    );
    await save(CHAPTER, report());
    const runId = await start();
    await model.called(4);
    await untilTrue(async () => factsOf(await recordOf(service.context.log, runId), 'ChildEnded').length === 1);
    await service.stop();
    await serve(script, { dataDir: dir.path });
    const run = await ended(runId);
    expect(run.final_draft).to.equal('## One\n<Trees|One>\n\n## Two\n<Trees|Two>\n\n## Three\n<Trees|Three>');
    expect(model.requests.map(({ promptInput }) => promptInput.material)).to.have.members(['Two', 'Three', undefined]);
    await service.stop();
    dir.remove();
  });

  it('reuses in a fork the runs that have ended, and starts the others anew', async () => {
    await serve();
    await save(CHAPTER, report({ max_parallel: 1 }));
    const run = await ended(await start());
    const events = await eventsOf(run.run_id);
    const at = events.find(({ type, data }) => type === 'ChildEnded' && data.index === 1)?.seq;
    const asked = model.requests.length;
    const fork = rest.read(await rest.post(`/api/runs/${run.run_id}/fork`, { at }), 202, 'run-start.json').run_id;
    expect((await ended(fork)).final_draft).to.equal(run.final_draft);
    expect(model.requests.slice(asked).map(({ promptInput: { material, label } }) => material ?? label)).to.deep.equal([
      'Three',
      'Edit',
    ]);
    const [child] = factsOf(await eventsOf(fork), 'ChildStarted');
    expect(child?.index).to.equal(2);
    expect(await listed(`parent_run=${fork}`)).to.deep.equal([child?.child]);
  });

  it('has runs of its own in a fork that changes its draft', async () => {
    await serve();
    await save(CHAPTER, report({ max_parallel: 1 }));
    const run = await ended(await start());
    const at = (await eventsOf(run.run_id)).findLast(({ type }) => type === 'ChildEnded')?.seq;
    const changes = { modified_state: { current_draft: '- Other' } };
    const reply = await rest.post(`/api/runs/${run.run_id}/fork`, { at, changes });
    const fork = rest.read(reply, 202, 'run-start.json').run_id;
    expect((await ended(fork)).final_draft).to.equal('## Other\n<Trees|Other>');
  });

  it('takes changes of its fields in a fork, but no other council', async () => {
    await serve((request, index) =>
      request.promptInput.material === 'Two' ? { error: new Error('no answer') } : script(request, index),
    );
    await save(CHAPTER, report());
    const run = await ended(await start());
    const events = await eventsOf(run.run_id);
    let at = events.findLast(({ type }) => type === 'ChildEnded')?.seq;
    const forked = (change: object) =>
      rest.post(`/api/runs/${run.run_id}/fork`, { at, changes: { nodes: [{ id: 'chapters', ...change }] } });
    const draftOf = async (change: object) => {
      const { run_id: runId } = rest.read(await forked(change), 202, 'run-start.json');
      const { final_draft: draft } = await ended(runId);
      return [draft, (await childrenOf(runId)).length];
    };
    const left = 'Left out, because their runs failed: Run 1 ("Two").';
    expect(await draftOf({ on_error: 'skip' })).to.deep.equal([
      `## One\n<Trees|One>\n\n## Three\n<Trees|Three>\n\n${left}`,
      0,
    ]);
    at = events.findLast(({ type }) => type === 'NodeFailed')?.seq;
    expect(await draftOf({ on_error: 'skip' }), 'after its failure').to.deep.equal([
      `## One\n<Trees|One>\n\n## Three\n<Trees|Three>\n\n${left}`,
      0,
    ]);
    // Other topics or items are of other runs.
    expect(await draftOf({ topic: 'About {{item}}', max_parallel: 1 })).to.deep.equal([
      '## One\n<About One|>\n\n## Two\n<About Two|>\n\n## Three\n<About Three|>',
      3,
    ]);
    for (const change of [{ council: 'report' }, { id: 'edit', on_error: 'skip' }])
      expect(rest.problem(await forked(change), 422).errors?.[0]?.loc).to.deep.equal([
        ...['body', 'changes', 'nodes', 0],
        Object.keys(change).at(-1),
      ]);
  });

  it('counts the calls of the runs that it cancels after one has failed', async () => {
    const council = {
      ...CHAPTER,
      nodes: [{ id: 'plan', label: 'Plan' }, ...CHAPTER.nodes],
      edges: [{ source: 'plan', target: 'write' }],
    };
    await serve((request, index) => {
      const { label, material } = request.promptInput;
      if (label !== 'Write') return label === 'Plan' ? { text: 'plan' } : script(request, index);
      return material === 'Two' && model.held.length === 2 ? { error: new Error('no answer') } : 'hold';
    });
    await save(council, report());
    const runId = await start();
    await model.called(7);
    if (model.held.length === 3)
      model.held.find(({ request }) => request.promptInput.material === 'Two')?.fail(new Error('no'));
    const run = await ended(runId);
    expect(run.error).to.include('Run 1 ("Two") failed: Node "write": no');
    expect(run.usage?.calls).to.equal(model.requests.length);
    const ends = factsOf(await eventsOf(runId), 'ChildEnded');
    expect(ends.map(({ status }) => status)).to.deep.equal(['failed', 'failed', 'failed']);
  });

  for (const on_error of ['fail', 'skip'] as const)
    it(`counts the calls of the runs that are cancelled with it, with "${on_error}"`, async () => {
      const council = {
        ...CHAPTER,
        nodes: [{ id: 'plan', label: 'Plan' }, ...CHAPTER.nodes],
        edges: [{ source: 'plan', target: 'write' }],
      };
      await serve((request, index) => (request.promptInput.label === 'Write' ? 'hold' : script(request, index)));
      await save(council, report({ on_error }));
      const runId = await start();
      await model.called(7);
      const reply = await rest.post(`/api/councils/run/${runId}/cancel`);
      const run = rest.read(reply, 200, 'run-result.json');
      expect(run).to.deep.include({ status: 'failed', error: 'Cancelled by the user' });
      expect(run.usage?.calls).to.equal(model.requests.length).and.equal(7);
      const events = await eventsOf(runId);
      expect(factsOf(events, 'ChildEnded').map(({ status }) => status)).to.deep.equal(['failed', 'failed', 'failed']);
      const overview = rest.read(await rest.get('/api/overview'), 200, 'overview.json');
      expect(JSON.stringify(overview)).to.include('"calls":7');
      for (const child of await childrenOf(runId)) expect(isOver(await rest.poll(child))).to.equal(true);
      // A fork starts again what was cancelled.
      const at = events.findLast(({ type }) => type === 'ChildEnded')?.seq;
      const fork = rest.read(await rest.post(`/api/runs/${runId}/fork`, { at }), 202, 'run-start.json').run_id;
      await model.called(13);
      while (model.held.length > 0) model.held[0]?.release('again');
      expect((await ended(fork)).final_draft).to.equal('## One\nagain\n\n## Two\nagain\n\n## Three\nagain');
    });

  it('counts the calls of the runs that end with another branch', async () => {
    await serve(({ promptInput: { label } }) => {
      return label === 'Outline' ? { text: OUTLINE } : 'hold';
    });
    const { nodes, edges = [], ...council } = report();
    const beside = { id: 'beside', label: 'Beside' };
    await save(CHAPTER, {
      ...council,
      nodes: [...nodes, beside],
      edges: [...edges, { source: 'outline', target: 'beside' }, { source: 'beside', target: 'edit' }],
    });
    const runId = await start();
    await model.called(5);
    model.held.find(({ request }) => request.promptInput.label === 'Beside')?.fail(new Error('no answer'));
    const run = await ended(runId);
    expect(run.error).to.equal('Node "beside": no answer');
    expect(run.usage?.calls).to.equal(5);
    const children = await childrenOf(runId);
    expect((await Promise.all(children.map(rest.poll))).map(isOver)).to.deep.equal([true, true, true]);
  });

  it('names a run without items that it leaves out', async () => {
    await serve((request, index) =>
      request.promptInput.label === 'Write' ? { error: new Error('no answer') } : script(request, index),
    );
    await save(CHAPTER, report({ for_each: undefined, on_error: 'skip' }));
    const run = await ended(await start());
    expect(run.final_draft).to.equal(`${OUTLINE}\n\nLeft out, because their runs failed: Its run.`);
  });

  it('finishes at the budget with the results that there are', async () => {
    const dear: LanguageModel = {
      provider: 'dear',
      defaultModel: 'dear-1',
      async ask({ promptInput: { label, material } }) {
        // One uses much more than it has reserved.
        const inputTokens = material === 'One' ? 59_000 : 10;
        return { text: label === 'Outline' ? OUTLINE : 'xxx', usage: { inputTokens, outputTokens: 10 } };
      },
    };
    await serve(script, { model: dear });
    await save(CHAPTER, report({ max_parallel: 1 }));
    const run = await ended(await start({ budget: { tokens: 60_000, on_exceeded: 'finish' } }));
    expect(run.status, run.error ?? '').to.equal('completed');
    expect(run.final_draft).to.include('## One\nxxx').and.include('Left out');
  });

  it('freezes the version of the other council at the start', async () => {
    await serve(holding(() => true));
    await save(CHAPTER, report({ max_parallel: 1 }));
    const runId = await start();
    await model.called(2);
    await rest.send('PUT', '/api/councils/chapter', { body: { nodes: [{ id: 'other', label: 'Other' }] } });
    for (const at of [2, 3, 4]) {
      await model.called(at);
      model.held[0]?.release('chapter');
    }
    await ended(runId);
    expect(new Set(model.requests.map(({ promptInput: { label } }) => label))).to.deep.equal(
      new Set(['Outline', 'Write', 'Edit']),
    );
  });

  it('contains neither itself nor more than three others in one another', async () => {
    await serve();
    await save(CHAPTER);
    const holds = (id: string, council: string): BlueprintCreate => ({
      id,
      name: id,
      nodes: [{ id: 'inner', type: 'council', council }],
    });
    await save(holds('two', 'chapter'), holds('three', 'two'), holds('four', 'three'));
    const refused = async (body: BlueprintCreate): Promise<string> =>
      rest.problem(await rest.post('/api/councils/', body), 422).detail;
    expect(await refused(holds('five', 'four'))).to.include('more than 3 deep');
    expect(await refused(holds('self', 'self'))).to.include('would contain itself');
    expect(await refused(holds('lost', 'nowhere'))).to.include('No such council: "nowhere"');
    const circle = await rest.send('PUT', '/api/councils/chapter', { body: { nodes: holds('', 'three').nodes } });
    expect(rest.problem(circle, 422).detail).to.include('would contain itself');
    expect((await ended(await start({}, 'four'))).final_draft).to.equal('<Trees|>');
  });

  it('has a warning for items of a first node, which no draft reaches, and goes on with an empty draft', async () => {
    // An editor that repeats an empty draft has given no answer.
    await serve(() => ({ text: 'Edited' }));
    const alone = { ...report(), nodes: report().nodes.slice(1), edges: [{ source: 'chapters', target: 'edit' }] };
    await save(CHAPTER);
    const saved = rest.read(await rest.post('/api/councils/', alone), 201, 'blueprint.json');
    expect(saved.warnings[0]?.message).to.include('Node "chapters" has no items').and.include('first node');
    const run = await ended(await start());
    expect(run.final_draft).to.equal('Edited');
    expect(model.requests.map(({ promptInput: { draft } }) => draft)).to.deep.equal(['']);
    expect(await childrenOf(run.run_id)).to.deep.equal([]);
  });

  it('has a warning if the other council has one', async () => {
    await serve();
    await save({ ...CHAPTER, nodes: [{ id: 'write', label: 'Write', model: 'mistral/large' }] });
    const outer = report();
    const saved = rest.read(await rest.post('/api/councils/', outer), 201, 'blueprint.json');
    expect(saved.warnings).to.have.lengthOf(1);
    expect(saved.warnings[0]?.message).to.match(/^Council "chapter" has a warning: .*No provider named "mistral"/);
    const renamed = await rest.send('PUT', '/api/councils/report', { body: { name: 'Other' } });
    expect(rest.read(renamed, 200, 'blueprint.json').warnings).to.deep.equal(saved.warnings);
    const checked = await rest.post('/api/councils/validate', { ...outer, id: undefined });
    expect(rest.read(checked, 200, 'blueprint-validation.json').warnings).to.deep.equal(saved.warnings);
  });

  it('has a share of the budget of its parent, and returns what it does not spend', async () => {
    await serve(({ promptInput: { label } }) => ({ text: label === 'Outline' ? OUTLINE : 'x' }));
    await save(CHAPTER, report({ max_parallel: 2 }));
    const run = await ended(await start({ budget: { tokens: 100_000 } }));
    expect(run.error).to.equal(null);
    const shares = factsOf(await eventsOf(run.run_id), 'ChildStarted').map(({ reserved }) => reserved?.tokens ?? 0);
    const [first = 0, second = 0, third = 0] = shares;
    expect(first).to.be.greaterThan(25_000);
    expect(second - first).to.be.within(0, 1);
    expect(third).to.be.greaterThan(first);
    const spent = (await Promise.all((await childrenOf(run.run_id)).map(rest.poll))).map(({ budget }) => budget);
    expect(spent.map((each) => each?.tokens)).to.deep.equal(shares);
    expect(run.budget?.spent_tokens).to.be.lessThan(100_000);
  });

  it('waits without a slot: many parents with many runs end when few may be active', async () => {
    await serve(script, { maxActiveRuns: 2 });
    await save(CHAPTER, report());
    const runs = await Promise.all(Array.from({ length: 20 }, () => start()));
    for (const runId of runs) expect((await ended(runId)).status).to.equal('completed');
    expect(service.faults).to.deep.equal([]);
  });
});
