import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { Run } from '../../src/client/client.js';
import type { BlueprintCreate, NextCalls } from '../../src/generated/schemas.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const members = ['ash', 'elm', 'fir'].map((id) => ({ id, label: `The ${id}` }));

const OAKS: BlueprintCreate = {
  id: 'oaks',
  name: 'Oaks',
  nodes: [
    { id: 'start', label: 'Opening', systemPrompt: 'Write verse.', maxOutputTokens: 100 },
    { id: 'left', tools: { webSearch: true, pdfReader: true } },
    { id: 'right' },
    { id: 'panel', type: 'panel', members },
    { id: 'rank', type: 'rank' },
    { id: 'judge', type: 'judge' },
    { id: 'jury', type: 'critic', members },
  ],
  edges: [
    { source: 'start', target: 'left' },
    { source: 'start', target: 'right' },
    { source: 'left', target: 'panel' },
    { source: 'right', target: 'panel' },
    { source: 'panel', target: 'rank' },
    { source: 'rank', target: 'judge' },
    { source: 'judge', target: 'jury' },
  ],
};

describe('GET /api/runs/{run_id}/next', () => {
  let service: RunningService;
  let rest: RestClient;
  let council: CouncilClient;

  before(async () => {
    service = await startService({
      prices: { 'offline-1': { input_cost_per_token: 0.001, output_cost_per_token: 0.01 } },
    });
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
    await council.blueprints.create(OAKS);
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const nextOf = async (runId: string): Promise<NextCalls> =>
    rest.read(await rest.get(`/api/runs/${runId}/next`), 200, 'next-calls.json');

  it('shows each call exactly as it is then made, of branches, joins and members too', async () => {
    const run = await council.runs.start({ topic: 'Oaks', blueprint: 'oaks', godMode: true });
    const foretold: NextCalls[] = [];
    for await (const { type } of run.events()) {
      if (type !== 'RunPaused') continue;
      foretold.push(await nextOf(run.id));
      await (await run.pause())?.approve();
    }
    expect(foretold.map(({ nodes }) => nodes.map(({ node }) => node))).to.deep.equal([
      ['start'],
      ['left', 'right'],
      ['panel'],
      ['rank'],
      ['judge'],
      ['jury'],
    ]);
    expect(foretold[0]?.nodes[0]).to.include({ label: 'Opening', role: 'agent' });
    expect(foretold[1]?.nodes[0]?.calls[0]?.tools).to.deep.equal(['webSearch: unavailable', 'pdfReader: unavailable']);
    expect(foretold[3]?.nodes[0]?.calls.map(({ order_shown: shown }) => shown?.length)).to.deep.equal([2, 2, 2]);
    await assertMade(run, foretold);
  });

  async function assertMade(run: Run, foretold: readonly NextCalls[]): Promise<void> {
    for (const { node, role, calls } of foretold.flatMap(({ nodes }) => nodes)) {
      expect(calls).to.have.lengthOf(['panel', 'rank', 'jury'].includes(node) ? 3 : 1);
      for (const { reserved: _, member_label: label, ...call } of calls) {
        const { step, attempt, member } = call;
        expect(await run.prompt(step, { attempt })).to.deep.include({ node, role, verified: true, ...call });
        expect(label).to.equal(member === undefined ? undefined : `The ${member}`);
      }
    }
  }

  it('estimates the most that the calls may cost, and shows what the run has used', async () => {
    const run = await council.runs.start({ topic: 'Oaks', blueprint: 'oaks', godMode: true });
    const { nodes, reserved, usage, seq, paused, budget } = await nextOf(run.id);
    const [call] = nodes[0]?.calls ?? [];
    const tokens = Math.ceil((call?.system.length ?? 0) / 3) + Math.ceil((call?.prompt.length ?? 0) / 3);
    expect(reserved).to.deep.equal({ tokens: tokens + 100, usd: (tokens + 1_000) / 1_000 });
    expect(usage).to.include({ calls: 0, cost_usd: null });
    expect({ seq, paused, budget }).to.deep.equal({ seq: (await run.pause())?.seq, paused: true, budget: undefined });
    expect(await run.next()).to.deep.equal(await nextOf(run.id));
    await run.cancel();
    expect(await nextOf(run.id)).to.deep.include({ paused: false, nodes: [], reserved: { tokens: 0, usd: 0 } });
  });

  it('shows the budget, what is spent of it and what the next calls need at a pause for the budget', async () => {
    const run = await council.runs.start({ topic: 'Oaks', budget: { tokens: 9_000 } });
    await rest.until(run.id, ({ status }) => status === 'paused');
    const { nodes, reserved, budget, pause_reason: reason } = await nextOf(run.id);
    expect(reason).to.equal('budget');
    expect(nodes).to.have.lengthOf(1);
    expect(budget?.needed_tokens).to.equal((budget?.spent_tokens ?? 0) + reserved.tokens);
    const pause = await run.pause();
    await pause?.approve({ budget: { tokens: 1_000_000 } });
    await rest.until(run.id, isOver);
    const [call] = nodes[0]?.calls ?? [];
    expect(await run.prompt(call?.step ?? 0)).to.include({ prompt: call?.prompt, verified: true });
  });

  it('answers 404 for an unknown run', async () => {
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/next`), 404);
  });
});
