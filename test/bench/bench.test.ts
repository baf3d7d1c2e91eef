import { expect } from 'chai';
import { figuresOf } from './contest.js';
import { enginePart } from './engine.js';
import { QUICK_EFFORT } from './effort.js';
import { figure, unmeasured } from './figure.js';
import { tableOf } from './table.js';

describe('Benchmark', () => {
  it('measures the engine beside its log', async () => {
    const figures = await enginePart.measure({
      ...QUICK_EFFORT,
      concurrencies: [1, 50],
      warmUpSeconds: 0.01,
      engineSeconds: 0.1,
      rawSeconds: 0.05,
    });

    expect(figures.map(({ name }) => name)).to.deep.equal([
      'log alone, 1 streams: durable appends',
      'engine, 1 at once: runs',
      'engine, 1 at once: processor time a run',
      'engine, 1 at once: share of (log alone ÷ 8)',
      'engine, 1 at once: a run, p50',
      'engine, 1 at once: a run, p99',
      'log alone, 50 streams: durable appends',
      'engine, 50 at once: runs',
      'engine, 50 at once: processor time a run',
      'engine, 50 at once: share of (log alone ÷ 8)',
      'engine, 50 at once: a run, p50',
      'engine, 50 at once: a run, p99',
      'engine, 50 at once: event-loop delay p99',
    ]);
    for (const each of figures) expect(each, each.name).to.have.nested.property('spread.median').that.is.at.least(0);
  });

  it('tells a contest by the ratios of its rounds', () => {
    const turn = (runsPerSecond: number, processorMsPerRun: number) => ({ runsPerSecond, processorMsPerRun });
    const figures = figuresOf(
      [
        { name: 'ours', atOnce: 50, turns: [turn(100, 1), turn(300, 2), turn(90, 4)] },
        { name: 'theirs', atOnce: 50, turns: [turn(10, 8), turn(20, 8), turn(10, 8)] },
      ],
      { unit: 'x', targets: new Map([[50, { atLeast: 10 }]]) },
    );

    expect(tableOf(figures).split('\n').slice(2, 4)).to.deep.equal([
      '| ours to theirs, 50 at once: runs/s | 10 x | 9 to 15 x (3) | ≥ 10 x | yes |',
      '| ours to theirs, 50 at once: runs a second of processor time | 4 x | 2 to 8 x (3) |  |  |',
    ]);
  });

  it('prints figures with their targets, and those it has not', () => {
    const table = tableOf([
      figure('runs', '/s', [1_400, 1_600.4, 1_700], { atLeast: 1_500, wished: 2_000 }),
      figure('latency', 'ms', [12.345], { atMost: 10 }),
      figure('share', '%', [61.26]),
      unmeasured('memory', 'MB', 'no /proc'),
    ]);

    expect(table.split('\n').slice(2)).to.deep.equal([
      '| runs | 1,600 /s | 1,400 to 1,700 /s (3) | ≥ 1,500 /s (2,000 wished) | yes |',
      '| latency | 12.3 ms |  | ≤ 10 ms | **no** |',
      '| share | 61.3 % |  |  |  |',
      '| memory | not measured: no /proc |  |  |  |',
    ]);
  });
});
