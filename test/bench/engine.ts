/** The engine under load: whole runs of the fixed graph with an instant model, every step durable before the next. */
import { instantModel } from '../support/instant-model.js';
import type { OpenEngineOptions } from '../support/open-engine.js';
import { tempDir } from '../support/temp-dir.js';
import { openBenchEngine } from './bench-engine.js';
import { bounded, closedLoop } from './closed-loop.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { watchLoopDelay } from './loop-delay.js';
import { rawAppendRate } from './raw-log.js';
import { percentile } from './statistics.js';

/** Appends that one run takes: seven node executions, and the end of each starts the next. */
const APPENDS_PER_RUN = 8;

/** Issue 3, "What it must show": runs/s on two cores by concurrency, and the share of what the log alone would allow. */
const TARGET_RUNS = new Map([
  [1, { atLeast: 250 }],
  [50, { atLeast: 1_500, wished: 2_000 }],
  [500, { atLeast: 1_500, wished: 2_000 }],
]);
const TARGET_SHARE_PERCENT = { atLeast: 60 };

/** Concurrency at which the event loop's delay is told. */
const DELAY_AT = 50;

export const enginePart: Part = {
  name: 'engine',
  method: ({ rounds, engineSeconds, rawSeconds }) =>
    `The engine in process, fixed graph, instant model scoring 6, 7, 8 (7 node executions, ${APPENDS_PER_RUN} appends). Each of ` +
    `${rounds} rounds measures, one after the other and each on a new file, the log alone (${rawSeconds} s of appends of ` +
    `two 300-byte events, one writer a stream, as many streams as runs) and the engine (${engineSeconds} s); the ratio is that ` +
    `of a round. Processor time is that of all threads, and steadier than a rate where others use the machine. A run lasts from its start to the acknowledgement of its last append. Event-loop delay without the ` +
    `1 ms of the probe's timer.`,
  async measure(effort) {
    await round(effort, { engineSeconds: effort.warmUpSeconds, rawSeconds: effort.warmUpSeconds });
    const rounds: (readonly Comparison[])[] = [];
    for (let i = 0; i < effort.rounds; i += 1) rounds.push(await round(effort, effort));
    return effort.concurrencies.flatMap((concurrent) =>
      figuresOf(
        concurrent,
        rounds.flat().filter((each) => each.concurrent === concurrent),
      ),
    );
  },
};

interface Comparison extends EngineRate {
  readonly concurrent: number;
  readonly rawAppendsPerSecond: number;
}

export interface EngineRate {
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly loopDelayP99Ms: number;
  /** Of all threads. */
  readonly processorMsPerRun: number;
}

/** Raw log and engine at each concurrency, close in time, since the machine may have other things to do. */
async function round(
  { concurrencies }: Pick<Effort, 'concurrencies'>,
  { engineSeconds, rawSeconds }: Pick<Effort, 'engineSeconds' | 'rawSeconds'>,
): Promise<readonly Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const concurrent of concurrencies) {
    const dir = tempDir();
    try {
      const rawAppendsPerSecond = await rawAppendRate(dir.path, { streams: concurrent, seconds: rawSeconds });
      const rate = await engineRate(dir.path, { concurrent, seconds: engineSeconds });
      comparisons.push({ concurrent, rawAppendsPerSecond, ...rate });
    } finally {
      dir.remove();
    }
  }
  return comparisons;
}

/** Runs the fixed graph in a folder for a time, so many runs at once. */
export async function engineRate(
  path: string,
  {
    concurrent,
    seconds,
    ...options
  }: { readonly concurrent: number; readonly seconds: number } & Pick<OpenEngineOptions, 'openLog' | 'cluster'>,
): Promise<EngineRate> {
  const engine = await openBenchEngine({ path, model: instantModel(), ...options });
  const delay = watchLoopDelay();
  const before = process.cpuUsage();
  const { acts, elapsedMs, latenciesMs } = await closedLoop({
    clients: concurrent,
    goesOn: bounded({ seconds }),
    act: () => engine.run(),
  });
  const loopDelayP99Ms = delay.p99Ms();
  const { user, system } = process.cpuUsage(before);
  await engine.stop();
  return {
    runsPerSecond: acts / (elapsedMs / 1_000),
    p50Ms: percentile(latenciesMs, 0.5),
    p99Ms: percentile(latenciesMs, 0.99),
    loopDelayP99Ms,
    processorMsPerRun: (user + system) / 1_000 / acts,
  };
}

function figuresOf(concurrent: number, rounds: readonly Comparison[]): readonly Figure[] {
  const at = `engine, ${concurrent} at once:`;
  const of = (value: (round: Comparison) => number): readonly number[] => rounds.map(value);
  const share = of((each) => (100 * each.runsPerSecond) / (each.rawAppendsPerSecond / APPENDS_PER_RUN));
  const delay = figure(
    `${at} event-loop delay p99`,
    'ms',
    of((each) => each.loopDelayP99Ms),
  );
  return [
    figure(
      `log alone, ${concurrent} streams: durable appends`,
      '/s',
      of((each) => each.rawAppendsPerSecond),
    ),
    figure(
      `${at} runs`,
      '/s',
      of((each) => each.runsPerSecond),
      TARGET_RUNS.get(concurrent),
    ),
    figure(
      `${at} processor time a run`,
      'ms',
      of((each) => each.processorMsPerRun),
    ),
    figure(`${at} share of (log alone ÷ ${APPENDS_PER_RUN})`, '%', share, TARGET_SHARE_PERCENT),
    figure(
      `${at} a run, p50`,
      'ms',
      of((each) => each.p50Ms),
    ),
    figure(
      `${at} a run, p99`,
      'ms',
      of((each) => each.p99Ms),
    ),
    ...(concurrent === DELAY_AT ? [delay] : []),
  ];
}
