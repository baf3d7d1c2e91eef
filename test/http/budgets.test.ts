import { expect } from 'chai';
import type { BlueprintCreate } from '../../src/generated/schemas.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { recordOf } from '../support/record-of.js';

const BUILT_IN = '/api/councils/run';
const topic = { input_topic: 'Trees' };

describe('The budget of a run', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  let blueprints = 0;

  before(async () => {
    service = await startService({
      model: {
        ...scriptedModel(),
        ask: (request, call) => model.ask(request, call),
        fullName: (name = 'scripted-1') => `scripted/${name}`,
      },
      prices: { 'scripted/scripted-1': { input_cost_per_token: 0.001, output_cost_per_token: 0.002 } },
    });
    rest = restClient(service.url);
  });
  beforeEach(() => {
    model = scriptedModel(councilScript([5, 9]));
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  after(() => service.stop());

  const start = async (body: object, path = BUILT_IN): Promise<string> =>
    rest.read(await rest.post(path, { ...topic, ...body }), 202, 'run-start.json').run_id;
  const pausedRun = async (budget: object): Promise<string> => {
    const runId = await start({ budget });
    await rest.until(runId, ({ status }) => status === 'paused');
    return runId;
  };
  const state = async (runId: string) =>
    rest.read(await rest.get(`/api/councils/run/${runId}/state`), 200, 'god-mode-state.json');
  const decide = (runId: string, body: object): Promise<Reply> => rest.post(`/api/councils/run/${runId}/approve`, body);
  const saved = async (fields: Partial<BlueprintCreate>): Promise<string> => {
    const id = `budgeted-${(blueprints += 1)}`;
    const nodes = [{ id: 'a', maxOutputTokens: 100 }];
    rest.read(await rest.post('/api/councils/', { id, name: 'Budgeted', nodes, ...fields }), 201, 'blueprint.json');
    return id;
  };

  it('is recorded, and shown with what is spent of it', async () => {
    const runId = await start({ budget: { usd: 100, tokens: 100_000 } });
    const { budget } = await rest.until(runId, isOver);
    expect(budget).to.deep.include({ usd: 100, tokens: 100_000, on_exceeded: 'pause', spent_tokens: 75 });
    expect(budget?.spent_usd).to.be.closeTo(5 * 0.02, 1e-9);
    const [requested] = await recordOf(service.context.log, runId);
    expect(requested?.data).to.deep.include({ budget: { usd: 100, tokens: 100_000, onExceeded: 'pause' } });
    expect(model.requests.map(({ maxOutputTokens }) => maxOutputTokens)).to.deep.equal(Array(5).fill(8_192));
  });

  it('of 0, or of a part of a token, is refused in the words of all other limits', async () => {
    const refused = async (budget: object): Promise<string> =>
      rest.problem(await rest.post('/api/councils/run', { input_topic: 'Trees', budget }), 422).detail;
    expect(await refused({ usd: 0 })).to.equal('body.budget.usd: Input should be greater than 0');
    expect(await refused({ tokens: 0 })).to.equal('body.budget.tokens: Input should be greater than or equal to 1');
    expect(await refused({ tokens: 1.5 })).to.equal('body.budget.tokens: Input should be a valid integer');
  });

  it('of a request replaces that of its blueprint', async () => {
    const id = await saved({ budget: { tokens: 10, on_exceeded: 'fail' } });
    const failed = await rest.until(await start({}, `/api/councils/${id}/run`), isOver);
    expect(failed).to.include({ status: 'failed' });
    expect(failed.error).to.match(
      /0 tokens spent of 10 tokens\. The next calls need a total budget of at least \d+ tokens/,
    );
    const own = await start({ budget: { tokens: 5_000 } }, `/api/councils/${id}/run`);
    expect(await rest.until(own, isOver)).to.include({ status: 'completed' });
  });

  it('stays in a blueprint that is updated', async () => {
    const id = await saved({ budget: { usd: 0.5 } });
    const { version, budget } = rest.read(
      await rest.send('PUT', `/api/councils/${id}`, { body: { name: 'Other' } }),
      200,
      'blueprint.json',
    );
    expect({ version, budget }).to.deep.equal({ version: 2, budget: { usd: 0.5 } });
  });

  it('of null in an update is removed from its blueprint, as fallbacks and approvals are', async () => {
    const id = await saved({ budget: { usd: 0.5 }, fallbacks: ['scripted-1'], approvals: { quorum: 2 } });
    const put = async (body: object) =>
      rest.read(await rest.send('PUT', `/api/councils/${id}`, { body }), 200, 'blueprint.json');
    expect(await put({ name: null })).to.include.keys('budget', 'fallbacks', 'approvals');
    const bare = await put({ budget: null, fallbacks: null, approvals: null });
    expect(bare).to.not.have.any.keys('budget', 'fallbacks', 'approvals');
    const refused = await rest.send('PUT', `/api/councils/${id}`, { body: { budget: { tokens: 0 } } });
    expect(rest.problem(refused, 422).errors?.map(({ loc }) => loc.join('.'))).to.deep.equal(['body.budget.tokens']);
  });

  it('of null in a start counts as absent', async () => {
    const id = await saved({ budget: { tokens: 5_000 } });
    const runId = await start({ budget: null }, `/api/councils/${id}/run`);
    expect((await rest.until(runId, isOver)).budget).to.include({ tokens: 5_000 });
    expect(await rest.until(await start({ budget: null }), isOver)).to.not.have.property('budget');
  });

  it('with its defaults spelled out identifies the same start, at any depth', async () => {
    const again = async (path: string, bodies: readonly object[]): Promise<unknown> => {
      const headers = { 'Idempotency-Key': `defaults-${path}` };
      const ids = await Promise.all(
        bodies.map(async (body) => {
          const sent = { body: { ...topic, ...body }, headers };
          return rest.read(await rest.send('POST', path, sent), 202, 'run-start.json').run_id;
        }),
      );
      return new Set(ids).size;
    };
    const budgets = [{ tokens: 5_000 }, { tokens: 5_000, on_exceeded: 'pause', usd: null }];
    expect(
      await again(
        BUILT_IN,
        budgets.map((budget) => ({ budget })),
      ),
    ).to.equal(1);
    const node = { id: 'a', systemPrompt: '', tools: { webSearch: false, pdfReader: false }, position: { x: 0, y: 0 } };
    const councils = [
      { nodes: [{ id: 'a' }], budget: budgets[0] },
      { nodes: [node], edges: [], budget: budgets[1], god_mode: false },
    ];
    expect(await again('/api/councils/try', councils)).to.equal(1);
  });

  it('is refused (422) with the place of the error', async () => {
    const locs = async (budget: unknown, path = BUILT_IN): Promise<unknown> =>
      rest.problem(await rest.post(path, { ...topic, budget }), 422).errors?.map(({ loc }) => loc.join('.'));
    expect(await locs({})).to.deep.equal(['body.budget']);
    expect(await locs({ usd: 0 })).to.deep.equal(['body.budget.usd']);
    expect(await locs({ tokens: 0 })).to.deep.equal(['body.budget.tokens']);
    expect(await locs({ tokens: 1.5 })).to.deep.equal(['body.budget.tokens']);
    expect(await locs({ tokens: 1, on_exceeded: 'wait' })).to.deep.equal(['body.budget.on_exceeded']);
    expect(await locs(7)).to.deep.equal(['body.budget']);
    expect(await locs({ tokens: 10, on_exceded: 'fail' })).to.deep.equal(['body.budget.on_exceded']);
    const draft = { name: 'x', nodes: [{ id: 'a' }], budget: { on_exceeded: 'fail' } };
    rest.problem(await rest.post('/api/councils/', draft), 422);
    rest.problem(await rest.post('/api/councils/validate', draft), 422);
    rest.problem(await rest.post('/api/councils/try', { ...topic, nodes: [{ id: 'a' }], budget: {} }), 422);
  });

  it('with an unknown field is refused (422) in every body that takes one', async () => {
    const nodes = [{ id: 'a' }];
    const budget = { tokens: 10, on_exceded: 'fail' };
    const id = await saved({});
    const [paused, running] = [await pausedRun({ tokens: 100 }), await start({})];
    const replies = await Promise.all([
      rest.post(BUILT_IN, { ...topic, budget }),
      rest.post(`/api/councils/${id}/run`, { ...topic, budget }),
      rest.post('/api/councils/try', { ...topic, nodes, budget }),
      rest.post(`/api/runs/${running}/fork`, { at: 0, budget }),
      rest.post('/api/councils/', { name: 'x', nodes, budget }),
      rest.post('/api/councils/validate', { name: 'x', nodes, budget }),
      rest.send('PUT', `/api/councils/${id}`, { body: { budget } }),
      decide(paused, { action: 'approve', budget: { tokens: 1_000_000, on_exceded: 'fail' } }),
    ]);
    const locs = replies.map((reply) => rest.problem(reply, 422).errors?.map(({ loc }) => loc.join('.')));
    expect(locs).to.deep.equal(replies.map(() => ['body.budget.on_exceded']));
    expect(await rest.poll(paused)).to.include({ status: 'paused' });
  });

  it('of a decision is refused (422) at a pause of God Mode, after expected_seq (409)', async () => {
    const id = await saved({ budget: { tokens: 100_000 } });
    const runId = await start({ god_mode: true }, `/api/councils/${id}/run`);
    await rest.until(runId, ({ status }) => status === 'paused');
    for (const action of ['approve', 'modify', 'reject']) {
      const decision = { action, budget: { tokens: 200_000 } };
      rest.problem(await decide(runId, { ...decision, expected_seq: 1 }), 409);
      const [fault] = rest.problem(await decide(runId, decision), 422).errors ?? [];
      expect(fault).to.deep.include({ loc: ['body', 'budget'], msg: 'Only a pause for the budget takes a budget' });
    }
    rest.read(await decide(runId, { action: 'approve' }), 200, 'run-result.json');
    expect((await rest.poll(runId)).budget).to.deep.include({ tokens: 100_000 });
  });

  it('in US dollars is refused (422), after an unknown blueprint (404), if a model has no price', async () => {
    const unpriced = [{ id: 'a', fallbacks: ['model-x'] }];
    const id = await saved({ nodes: unpriced });
    const path = `/api/councils/${id}/run`;
    const { errors = [] } = rest.problem(await rest.post(path, { ...topic, budget: { usd: 1 } }), 422);
    expect(errors.map(({ loc }) => loc)).to.deep.equal([['body', 'budget', 'usd']]);
    expect(errors[0]?.msg).to.include('scripted/model-x');
    rest.problem(await rest.post('/api/councils/no-such/run', { ...topic, budget: { usd: 1 } }), 404);
    const runId = await start({ budget: { tokens: 50_000 } }, path);
    await rest.until(runId, isOver);
    const fork = { at: 0, budget: { usd: 1 } };
    expect(rest.problem(await rest.post(`/api/runs/${runId}/fork`, fork), 422).detail).to.include('scripted/model-x');
  });

  it('in US dollars is saved with a warning if a model that a run may ask has no price', async () => {
    const warned = async (council: object): Promise<readonly string[]> => {
      const draft = { name: 'Priced', nodes: [{ id: 'a' }, { id: 'b', model: 'model-x' }], ...council };
      const checked = await rest.post('/api/councils/validate', draft);
      const { valid, warnings } = rest.read(checked, 200, 'blueprint-validation.json');
      const { warnings: saved } = rest.read(await rest.post('/api/councils/', draft), 201, 'blueprint.json');
      expect({ valid, warnings }).to.deep.equal({ valid: true, warnings: saved });
      return saved.flatMap(({ path, message }) => (path === 'budget.usd' ? [message] : []));
    };
    const [message, ...more] = await warned({ budget: { usd: 1 }, edges: [{ source: 'a', target: 'b' }] });
    expect(message).to.match(/No run can start with this budget\. Model "scripted\/model-x" has no price/);
    expect(more).to.be.empty;
    const free = [{ budget: { usd: 1 } }, { budget: { tokens: 9 }, edges: [{ source: 'a', target: 'b' }] }];
    for (const council of free) expect(await warned(council)).to.be.empty;
    expect(await warned({ budget: { usd: 1 }, fallbacks: ['model-y'] })).to.have.length(1);
  });

  it('in US dollars does not hide the fault of a council, which makes no call', async () => {
    const id = await saved({
      nodes: [{ id: 'a', model: 'model-x' }],
      edges: [{ source: 'a', target: 'nowhere' }],
    });
    const runId = await start({ budget: { usd: 1 } }, `/api/councils/${id}/run`);
    const over = await rest.until(runId, isOver);
    expect(over).to.include({ status: 'failed' });
    expect(over.error).to.include('nowhere');
    expect(over.budget).to.include({ spent_usd: 0, spent_tokens: 0 });
  });

  it('pauses a run of the built-in council, which an approval with a larger budget continues', async () => {
    const runId = await pausedRun({ tokens: 100, on_exceeded: 'pause' });
    const poll = await rest.until(runId, ({ status }) => status === 'paused');
    expect(poll).to.deep.include({ pause_reason: 'budget', paused: true, next_nodes: ['master_agent'] });
    const session = await state(runId);
    expect(session).to.deep.include({ pause_reason: 'budget', allowed_actions: ['approve', 'reject'], paused: true });
    const inbox = rest.read(await rest.get('/api/approvals?mine=1'), 200, 'approval-list.json');
    expect(inbox.find((each) => each.run_id === runId)).to.deep.include({ pause_reason: 'budget' });
    const approval = { action: 'approve', budget: { tokens: 200_000 }, expected_seq: session.seq };
    rest.read(await decide(runId, approval), 200, 'run-result.json');
    const over = await rest.until(runId, isOver);
    expect(over).to.include({ status: 'completed' });
    expect(over).to.not.have.property('pause_reason');
    expect(over.budget).to.deep.include({ tokens: 200_000, spent_tokens: 75 });
    // The pause has opened a session, which stays.
    expect(await state(runId)).to.deep.include({ paused: false, allowed_actions: [] });
    expect(over).to.deep.include({ paused: false, next_nodes: [], current_draft: over.final_draft });
  });

  it('is shown with what is spent and needed in poll, state and inbox while the run is paused for it', async () => {
    const runId = await pausedRun({ tokens: 100, usd: 50 });
    const { budget } = await rest.poll(runId);
    expect(budget).to.include({ usd: 50, tokens: 100, spent_usd: 0, spent_tokens: 0, on_exceeded: 'pause' });
    expect(budget?.needed_tokens).to.be.greaterThan(8_192);
    expect(budget?.needed_usd).to.be.greaterThan(16);
    expect((await state(runId)).budget).to.deep.equal(budget);
    const inbox = rest.read(await rest.get('/api/approvals'), 200, 'approval-list.json');
    expect(inbox.find((each) => each.run_id === runId)?.budget).to.deep.equal(budget);
    const { needed_usd: usd, needed_tokens: tokens } = budget ?? {};
    rest.read(await decide(runId, { action: 'approve', budget: { usd, tokens } }), 200, 'run-result.json');
    await rest.until(runId, ({ budget: now }) => now?.spent_tokens !== 0);
  });

  it('shows nothing needed for a run that is not paused for it', async () => {
    const id = await saved({ budget: { tokens: 50_000 } });
    const runId = await start({ god_mode: true }, `/api/councils/${id}/run`);
    await rest.until(runId, ({ status }) => status === 'paused');
    const plain = { usd: null, tokens: 50_000, spent_usd: 0, spent_tokens: 0, on_exceeded: 'pause' };
    expect((await rest.poll(runId)).budget).to.deep.equal(plain);
    expect((await state(runId)).budget).to.deep.equal(plain);
    rest.read(await decide(runId, { action: 'reject' }), 200, 'run-result.json');
    expect((await rest.poll(runId)).budget).to.deep.equal(plain);
  });

  it('is named by the refusal (422) of a decision, after expected_seq (409)', async () => {
    const runId = await pausedRun({ tokens: 100 });
    const locs = async (body: object): Promise<unknown> =>
      rest.problem(await decide(runId, body), 422).errors?.map(({ loc }) => loc.join('.'));
    rest.problem(await decide(runId, { action: 'approve', expected_seq: 1 }), 409);
    expect(await locs({ action: 'approve' })).to.deep.equal(['body.budget']);
    expect(await locs({ action: 'approve', budget: { tokens: 101 } })).to.deep.equal(['body.budget.tokens']);
    expect(await locs({ action: 'modify', modified_state: { current_draft: 'x' } })).to.deep.equal(['body.action']);
    const { detail } = rest.problem(await decide(runId, { action: 'approve' }), 422);
    const [, needed = ''] = /at least (\d+) tokens/.exec(detail) ?? [];
    rest.read(await decide(runId, { action: 'approve', budget: { tokens: Number(needed) } }), 200, 'run-result.json');
    await rest.until(runId, ({ status }) => status === 'paused');
    const rejection = rest.read(await decide(runId, { action: 'reject' }), 200, 'run-result.json');
    expect(rejection).to.include({ status: 'failed' });
  });
});
