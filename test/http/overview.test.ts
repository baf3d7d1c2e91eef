import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { HistoryRecord, Overview } from '../../src/generated/schemas.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const pair = {
  name: 'Pair',
  nodes: [{ id: 'write' }, { id: 'polish' }],
  edges: [{ source: 'write', target: 'polish' }],
};

describe('GET /api/overview', () => {
  let service: RunningService;
  let rest: RestClient;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const overview = async (query = ''): Promise<Overview> =>
    rest.read(await rest.get(`/api/overview${query}`), 200, 'overview.json');

  it('has only zeros and nulls before the first run', async () => {
    const { days, councils, models, outcomes, duration, waiting } = await overview();
    expect({ days, councils, models }).to.deep.equal({ days: [], councils: [], models: [] });
    expect(outcomes).to.deep.equal({ completed: 0, failed: 0, rejected: 0, cancelled: 0 });
    expect(duration).to.deep.equal({ median_ms: null, p95_ms: null });
    expect(waiting).to.include({ runs: 0, oldest_since: null });
  });

  it('counts outcomes, durations, scores and usage of ended runs as their records show them', async () => {
    const blueprint = await council.blueprints.create(pair);
    const built = await Promise.all([council.runs.start({ topic: 'One' }), council.runs.start({ topic: 'Two' })]);
    const saved = await council.runs.start({ topic: 'Three', blueprint });
    const [rejected, cancelled] = await Promise.all(
      ['Four', 'Five'].map((topic) => council.runs.start({ topic, blueprint, godMode: true })),
    );
    await (await rejected?.pause())?.reject();
    await cancelled?.cancel();
    const trial = await council.runs.tryBlueprint({ topic: 'Six', blueprint: pair });
    const waitingId = await startGodRun(service.context, graphOf('write -> polish'));
    await pausedBefore(service.context, waitingId, 'write');
    for (const { id } of [...built, saved, trial]) await rest.until(id, isOver);
    assertFits(await overview(), await Promise.all([...built, saved].map((run) => run.record())), blueprint.id);
    expect(await council.overview()).to.deep.equal(await overview());
  });

  function assertFits(told: Overview, records: readonly HistoryRecord[], blueprintId: string): void {
    const today = new Date().toISOString().slice(0, 10);
    expect(told.to).to.equal(today);
    expect(Date.parse(told.to) - Date.parse(told.from), '30 days').to.equal(29 * 86_400_000);
    expect(told.outcomes).to.deep.equal({ completed: 3, failed: 0, rejected: 1, cancelled: 1 });
    expect(told.days.map(({ outcomes }) => outcomes)).to.deep.equal([told.outcomes]);
    const longest = Math.max(...records.map(({ duration_ms: ms }) => ms ?? 0));
    expect(told.duration.p95_ms).to.be.closeTo(longest, 0.03 * longest + 1);
    expect(told.days[0]?.duration).to.deep.equal(told.duration);
    const tokens = records.reduce((sum, { usage }) => sum + (usage?.input_tokens ?? 0), 0);
    const [model, ...others] = told.models;
    expect(others).to.deep.equal([]);
    expect(model?.usage.input_tokens).to.equal(tokens);
    expect(told.months).to.deep.equal([{ month: today.slice(0, 7), usage: model?.usage }]);
    assertCouncils(told.councils, { blueprintId, today, score: records[0]?.critic_score ?? null });
    expect(told.waiting.runs).to.equal(1);
    expect(told.waiting.ages.map(({ runs }) => runs)).to.deep.equal([1, 0, 0, 0]);
  }

  function assertCouncils(
    [first, second]: Overview['councils'],
    { blueprintId, today, score }: { blueprintId: string; today: string; score: number | null },
  ): void {
    expect([first, second].map((each) => [each?.blueprint_id, each?.runs])).to.deep.equal([
      [blueprintId, 3],
      [null, 2],
    ]);
    expect(second).to.deep.include({ score, days: [{ day: today, runs: 2, score }] });
    expect([first?.usage.cost_usd, second?.usage.unpriced_calls]).to.deep.equal([0, 0]);
  }

  it('counts the runs of other days apart', async () => {
    const { outcomes, from, to } = await overview('?from=2026-01-01&to=2026-01-31T23:00:00Z');
    expect({ from, to }).to.deep.equal({ from: '2026-01-01', to: '2026-01-31' });
    expect(outcomes.completed).to.equal(0);
  });

  it('answers 422 for an unreadable time, a reversed range and more than 366 days', async () => {
    for (const query of ['from=x', 'to=2026-02-30', 'from=2026-02-02&to=2026-02-01', 'from=2024-01-01&to=2025-01-01'])
      rest.problem(await rest.get(`/api/overview?${query}`), 422);
    await overview('?from=2025-01-01&to=2026-01-01');
  });
});
