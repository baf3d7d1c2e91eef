import { expect } from 'chai';
import { join } from 'node:path';
import { bucketOf, durationAt } from '../../../src/projections/overview.js';
import type { OverviewRows } from '../../../src/projections/overview.js';
import type { RunSummary } from '../../../src/projections/run-summary.js';
import { createViewsFile } from '../../../src/projections/views/views-file.js';
import type { ViewsStore } from '../../../src/projections/views/views-store.js';
import { viewsStore } from '../../../src/projections/views/views-store.js';
import { summaryWith, usageWith } from '../../support/run-summaries.js';
import { seededRandom } from '../../support/seeded-random.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';

const ENDED = { status: 'completed', completedAt: '2026-01-01T00:00:10.000Z', criticScore: 8 } as const;

describe('The totals of ended runs', () => {
  let dir: TempDir;
  let store: ViewsStore;
  const file = (): string => join(dir.path, 'views.sqlite');

  beforeEach(() => {
    dir = tempDir();
    store = viewsStore(createViewsFile(file(), { identity: 'log' }), file());
  });
  afterEach(() => {
    store.close();
    dir.remove();
  });

  const write = (...runs: readonly RunSummary[]): void =>
    store.write({ runs, blueprints: [], documents: [], leaves: [] }, null);
  const totals = (): OverviewRows => store.overview({ days: ['2026-01-01', '2026-01-31'], waitingSince: [] });

  it('count a run when it has ended, once', () => {
    const run = summaryWith('one', { usage: usageWith('oak', { inputTokens: 7, costUsd: 0.5 }) });
    write(run);
    expect(totals().outcomes).to.deep.equal([]);
    write({ ...run, ...ENDED });
    write({ ...run, ...ENDED, seq: 9 });
    expect(totals().outcomes).to.deep.equal([{ day: '2026-01-01', outcome: 'completed', runs: 1 }]);
    expect(totals().byModel).to.deep.equal([
      { name: 'oak', calls: 1, unmetered: 0, unpriced: 0, input: 7, output: 0, costUsd: 0.5 },
    ]);
    expect(durationAt(totals().durations, 0.5)).to.be.closeTo(10_000, 250);
  });

  it('count the fold that replaces a wrong row in place of it', () => {
    write(summaryWith('one', { ...ENDED, blueprintId: 'a', usage: usageWith('oak', { inputTokens: 7 }) }));
    write(summaryWith('one', { status: 'failed', failureKind: 'rejected', createdAt: '2026-01-02T00:00:00.000Z' }));
    expect(totals().outcomes.filter(({ runs }) => runs > 0)).to.deep.equal([
      { day: '2026-01-02', outcome: 'rejected', runs: 1 },
    ]);
    expect(totals().byModel.map(({ calls, input }) => [calls, input])).to.deep.equal([[0, 0]]);
    expect(totals().durations).to.deep.equal([]);
  });

  it('count a corrupt run as failed, and as before once its record is valid', () => {
    const run = summaryWith('one', { ...ENDED, usage: usageWith('oak', { inputTokens: 7 }) });
    write(run);
    const before = totals();
    const counted = (): unknown => [
      totals().outcomes.map(({ outcome, runs }) => [outcome, runs]),
      totals().byModel.map(({ calls, input }) => [calls, input]),
      totals().scores.map(({ runs, scored }) => [runs, scored]),
    ];
    for (const _ of ['once', 'again']) {
      store.saveCorrupt({ runId: 'one', seq: 1, reason: 'spoilt' });
      expect(counted()).to.deep.equal([[['failed', 1]], [[0, 0]], [[1, 0]]]);
      write({ ...run, status: 'running', completedAt: null });
      expect(counted()).to.deep.equal([[['failed', 1]], [[0, 0]], [[1, 0]]]);
    }
    write(run);
    store.removeCorrupt('one');
    expect(totals()).to.deep.equal(before);
  });

  it('leave out trials that wait for a human', () => {
    const waiting = { status: 'paused', waitingSince: '2026-01-01T00:00:00.000Z' } as const;
    write(summaryWith('trial', { ...waiting, isTrial: true }));
    const of = (): OverviewRows['waiting'] =>
      store.overview({ days: ['2026-01-01', '2026-01-31'], waitingSince: ['2026-01-02T00:00:00.000Z'] }).waiting;
    expect(of()).to.deep.equal({ runs: 0, first: null, before: [0] });
    write(summaryWith('one', { ...waiting, waitingSince: '2026-01-01T00:00:01.000Z' }));
    expect(of()).to.deep.equal({ runs: 1, first: '2026-01-01T00:00:01.000Z', before: [1] });
  });

  it('leave out trials, runs of other days and waits for humans', () => {
    const waited = { completedAt: '2026-01-01T01:00:00.000Z', waitedMs: 3_590_000 };
    write(
      summaryWith('trial', { ...ENDED, isTrial: true }),
      summaryWith('old', { ...ENDED, createdAt: '2025-12-31T23:59:59.999Z' }),
      summaryWith('waited', { ...ENDED, ...waited }),
    );
    expect(totals().outcomes.map(({ runs }) => runs)).to.deep.equal([1]);
    expect(durationAt(totals().durations, 1)).to.be.closeTo(10_000, 250);
  });
});

describe('A percentile of durations', () => {
  it('is within 2.5 % of the true one, or within a millisecond', () => {
    const random = seededRandom(41);
    const durations = Array.from({ length: 2_000 }, () => Math.floor(Math.exp(random() * 18)) - 1).sort(
      (a, b) => a - b,
    );
    const rows = durations.map((each) => ({ bucket: bucketOf(each), runs: 1 }));
    for (const share of [0, 0.01, 0.5, 0.95, 0.999, 1]) {
      const exact = durations[Math.max(1, Math.ceil(share * durations.length)) - 1] ?? expect.fail();
      expect(durationAt(rows, share), String(share)).to.be.closeTo(exact, 0.025 * exact + 1);
    }
    expect(durationAt([], 0.5)).to.equal(null);
  });
});
