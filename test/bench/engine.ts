/** The engine under load: complete runs of the fixed graph on a model that answers at once, every append durable. */
import { instantModel } from '../support/instant-model.js';
import type { OpenEngineOptions } from '../support/open-engine.js';
import { tempDir } from '../support/temp-dir.js';
import { openBenchEngine } from './bench-engine.js';
import { bounded, closedLoop } from './closed-loop.js';
import type { Figure, Part, Target } from './figure.js';
import { CONCURRENCIES, figure } from './figure.js';
import { percentile } from './statistics.js';

const TARGET_RUNS: ReadonlyMap<number, Target> = new Map([
  [1, { atLeast: 250 }],
  [50, { atLeast: 1_500 }],
  [500, { atLeast: 1_500 }],
]);

export const enginePart: Part = {
  name: 'engine',
  method: ({ rounds, engineSeconds }) =>
    `The engine in process on the embedded log, fixed graph, a model that answers at once with scores 6, 7, 8 (7 node ` +
    `executions, 8 appends): ${rounds} rounds of ${engineSeconds} s, each on a new file. Processor time is that of all ` +
    `threads. A run lasts from its start to the acknowledgement of its last append.`,
  async measure({ rounds, warmUpSeconds, engineSeconds }) {
    for (const concurrent of CONCURRENCIES) await engineRate({ concurrent, seconds: warmUpSeconds });
    const figures: Figure[] = [];
    for (const concurrent of CONCURRENCIES) {
      const rates: EngineRate[] = [];
      for (let i = 0; i < rounds; i += 1) rates.push(await engineRate({ concurrent, seconds: engineSeconds }));
      figures.push(...engineFigures(`engine, ${concurrent} concurrent:`, rates, TARGET_RUNS.get(concurrent) ?? null));
    }
    return figures;
  },
};

export interface EngineRate {
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all threads. */
  readonly processorMsPerRun: number;
}

/** Keeps `concurrent` runs of the fixed graph going for a time, on a new folder. */
export async function engineRate({
  concurrent,
  seconds,
  ...options
}: { readonly concurrent: number; readonly seconds: number } & Pick<
  OpenEngineOptions,
  'openLog'
>): Promise<EngineRate> {
  const dir = tempDir();
  const engine = await openBenchEngine({ path: dir.path, model: instantModel(), ...options });
  const before = process.cpuUsage();
  const { acts, elapsedMs, latenciesMs } = await closedLoop({
    clients: concurrent,
    goesOn: bounded({ seconds }),
    act: () => engine.run(),
  });
  const { user, system } = process.cpuUsage(before);
  await engine.stop();
  dir.remove();
  return {
    runsPerSecond: acts / (elapsedMs / 1_000),
    p50Ms: percentile(latenciesMs, 0.5),
    p99Ms: percentile(latenciesMs, 0.99),
    processorMsPerRun: (user + system) / 1_000 / acts,
  };
}

export function engineFigures(
  prefix: string,
  rates: readonly EngineRate[],
  target: Target | null = null,
): readonly Figure[] {
  const of = (value: (rate: EngineRate) => number): readonly number[] => rates.map(value);
  const [runs, processorMs] = [of((each) => each.runsPerSecond), of((each) => each.processorMsPerRun)];
  const [p50, p99] = [of((each) => each.p50Ms), of((each) => each.p99Ms)];
  return [
    figure(`${prefix} runs`, '/s', runs, target),
    figure(`${prefix} processor time per run`, 'ms', processorMs),
    figure(`${prefix} duration of a run, p50`, 'ms', p50),
    figure(`${prefix} duration of a run, p99`, 'ms', p99),
  ];
}
