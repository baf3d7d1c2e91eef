/** What a graph's form costs: a saved council beside the fixed graph, a long chain, a wide front. */
import type { Graph } from '../../src/generated/schemas.js';
import { graphOf } from '../support/given.js';
import { instantModel } from '../support/instant-model.js';
import { runRequest } from '../support/open-engine.js';
import { tempDir } from '../support/temp-dir.js';
import { openBenchEngine } from './bench-engine.js';
import { bounded, closedLoop } from './closed-loop.js';
import type { Effort, Part } from './figure.js';
import { figure } from './figure.js';
import { percentile } from './statistics.js';

const AT_ONCE = 50;
const CHAIN = 50;
const BRANCHES = 20;

/** Issue 4: a blueprint run of 7 nodes within 10 % of the fixed graph, whose run has 7 node executions. */
const TARGET_SHARE_PERCENT = { atLeast: 90 };

const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);

/** Agents one after the other. */
const chainOf = (length: number): Graph => {
  const [first = '', ...others] = names('n', length);
  return graphOf(others.map((each, index) => `${index === 0 ? first : others[index - 1]} -> ${each}`).join('\n'));
};

const GRAPHS: readonly Shape[] = [
  { name: 'fixed graph, 7 node executions', graph: undefined, executions: 7 },
  { name: 'blueprint of 7 nodes', graph: chainOf(7), executions: 7 },
  { name: `chain of ${CHAIN} nodes`, graph: chainOf(CHAIN), executions: CHAIN },
  {
    name: `front of ${BRANCHES} branches that join`,
    graph: graphOf(`plan -> ${names('b', BRANCHES).join(', ')}\n${names('b', BRANCHES).join(', ')} -> meet`),
    executions: BRANCHES + 2,
  },
];

interface Shape {
  readonly name: string;
  /** Undefined is the fixed graph. */
  readonly graph: Graph | undefined;
  /** Node executions of a run. */
  readonly executions: number;
}

interface Rate {
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export const graphsPart: Part = {
  name: 'graphs',
  method: ({ rounds, graphSeconds }) =>
    `The engine in process, instant model, ${AT_ONCE} runs at once; each of ${rounds} rounds measures every graph for ` +
    `${graphSeconds} s, one after the other and each on a new file. The share is that of a round.`,
  async measure(effort) {
    await rateOf(GRAPHS[0], effort.warmUpSeconds);
    const rounds: (readonly Rate[])[] = [];
    for (let i = 0; i < effort.rounds; i += 1) rounds.push(await round(effort));
    const share = rounds.map(([fixed, seven]) => (100 * (seven?.runsPerSecond ?? 0)) / (fixed?.runsPerSecond ?? 0));
    const figures = GRAPHS.flatMap(({ name, executions }, index) => {
      const of = (value: (rate: Rate) => number): readonly number[] =>
        rounds.flatMap((rates) => rates.slice(index, index + 1).map(value));
      return [
        figure(
          `${name}: runs`,
          '/s',
          of(({ runsPerSecond }) => runsPerSecond),
        ),
        figure(
          `${name}: node executions`,
          '/s',
          of(({ runsPerSecond }) => runsPerSecond * executions),
        ),
        figure(
          `${name}: a run, p50`,
          'ms',
          of(({ p50Ms }) => p50Ms),
        ),
        figure(
          `${name}: a run, p99`,
          'ms',
          of(({ p99Ms }) => p99Ms),
        ),
      ];
    });
    return [...figures, figure('blueprint of 7 nodes: share of the fixed graph', '%', share, TARGET_SHARE_PERCENT)];
  },
};

async function round({ graphSeconds }: Effort): Promise<readonly Rate[]> {
  const rates: Rate[] = [];
  for (const shape of GRAPHS) rates.push(await rateOf(shape, graphSeconds));
  return rates;
}

async function rateOf(shape: Shape | undefined, seconds: number): Promise<Rate> {
  const dir = tempDir();
  try {
    const graph = shape?.graph;
    const template = runRequest('', graph === undefined ? {} : { graph });
    const engine = await openBenchEngine({ path: dir.path, model: instantModel(), template });
    const { acts, elapsedMs, latenciesMs } = await closedLoop({
      clients: AT_ONCE,
      goesOn: bounded({ seconds }),
      act: () => engine.run(),
    });
    await engine.stop();
    const [p50Ms, p99Ms] = [percentile(latenciesMs, 0.5), percentile(latenciesMs, 0.99)];
    return { runsPerSecond: acts / (elapsedMs / 1_000), p50Ms, p99Ms };
  } finally {
    dir.remove();
  }
}
