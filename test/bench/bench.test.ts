import { expect } from 'chai';
import { figuresOf } from './contest.js';
import { enginePart } from './engine.js';
import { figure, QUICK_EFFORT, unmeasured } from './figure.js';
import { tableOf } from './table.js';
import { soakIt } from '../support/soak.js';

describe('Benchmark', () => {
  soakIt('measures the engine at 1, 50 and 500 concurrent runs', async () => {
    const figures = await enginePart.measure({ ...QUICK_EFFORT, warmUpSeconds: 0.01, engineSeconds: 0.1 });

    expect(figures).to.have.length(12);
    for (const each of figures) expect(each, each.name).to.have.nested.property('spread.median').that.is.above(0);
  });

  it('compares contestants by the ratio of each round', () => {
    const turn = (runsPerSecond: number, processorMsPerRun: number) => ({ runsPerSecond, processorMsPerRun });
    const figures = figuresOf([
      { name: 'ours', atOnce: 50, turns: [turn(100, 1), turn(300, 2), turn(90, 4)] },
      { name: 'theirs', atOnce: 50, turns: [turn(10, 8), turn(20, 8), turn(10, 8)] },
    ]);

    expect(tableOf(figures).split('\n').slice(2, 4)).to.deep.equal([
      '| ours to theirs, 50 concurrent: runs/s | 10 x | 9 to 15 x (3) |  |  |',
      '| ours to theirs, 50 concurrent: runs per second of processor time | 4 x | 2 to 8 x (3) |  |  |',
    ]);
  });

  it('prints measured figures with targets, and the reason of an unmeasured one', () => {
    const table = tableOf([
      figure('runs', '/s', [1_400, 1_600.4, 1_700], { atLeast: 1_500 }),
      figure('latency', 'ms', [12.345], { atMost: 10 }),
      figure('share', '%', [61.26]),
      unmeasured('memory', 'MB', 'no /proc'),
    ]);

    expect(table.split('\n').slice(2)).to.deep.equal([
      '| runs | 1,600 /s | 1,400 to 1,700 /s (3) | ≥ 1,500 /s | yes |',
      '| latency | 12.3 ms |  | ≤ 10 ms | **no** |',
      '| share | 61.3 % |  |  |  |',
      '| memory | not measured: no /proc |  |  |  |',
    ]);
  });
});
