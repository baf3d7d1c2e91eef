/** What many finished runs cost those who come later: the start of the service, a page of the history, a poll. */
import { Agent } from 'node:http';
import { instantModel } from '../support/instant-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { closedLoop } from './closed-loop.js';
import { copiedRuns } from './copied-runs.js';
import type { Effort, Figure, Part, Target } from './figure.js';
import { figure } from './figure.js';
import { exchange, textIn } from './rest-clients.js';
import { startServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

const PAGE = 50;

/** Issue 3: "must not grow", with room for the noise of a start. */
const TARGET_GROWTH_PERCENT = { atMost: 10 };
/** Issue 4, "What it must show", at the most runs. */
const TARGET_START_UP_MS = { atMost: 2_000 };
const TARGET_PAGE_MS = { atMost: 5 };

export const historyPart: Part = {
  name: 'history',
  method: ({ starts, requests }) =>
    `Data directories of finished runs of the fixed graph: one was run, the others are its copies, sealed under their ` +
    `own ids. Start-up is from the start of a process of dist/src/main.js to its ready line, default settings; ${starts} ` +
    `starts of each directory in turns, after a clean stop; growth is that from the first directory with runs to the last, ` +
    `turn by turn. The first start of all, with no read models yet, is told apart. Then ${requests} requests one after the ` +
    `other: pages of ${PAGE} runs, and polls of a finished run.`,
  async measure(effort) {
    const houses: House[] = [];
    try {
      for (const runs of [0, ...effort.historyRuns]) houses.push(await fill(runs));
      for (let i = 0; i < effort.starts; i += 1) for (const each of houses) each.startsMs.push(await startUpMs(each));
      const figures: Figure[] = [];
      for (const each of houses) figures.push(...startFigures(each, effort), ...(await requestFigures(each, effort)));
      return [...figures, figure('start-up: growth', '%', growthPercent(houses.slice(1)), TARGET_GROWTH_PERCENT)];
    } finally {
      for (const { dir } of houses) dir.remove();
    }
  },
};

interface House {
  readonly dir: TempDir;
  readonly runs: number;
  readonly firstStartMs: number;
  readonly startsMs: number[];
}

async function fill(runs: number): Promise<House> {
  const dir = tempDir();
  if (runs > 0) await copiedRuns(dir.path, { model: instantModel(), runs });
  return { dir, runs, firstStartMs: await startUpMs({ dir }), startsMs: [] };
}

async function startUpMs({ dir }: Pick<House, 'dir'>): Promise<number> {
  const service = await startServiceProcess(dir.path);
  await service.stop();
  return service.startUpMs;
}

function startFigures({ runs, firstStartMs, startsMs }: House, effort: Effort): readonly Figure[] {
  const having = `with ${runs.toLocaleString('en-US')} finished runs`;
  return [
    figure(`start-up ${having}`, 'ms', startsMs, atMost(runs, effort, TARGET_START_UP_MS)),
    figure(`start-up ${having}, read models made anew`, 'ms', [firstStartMs]),
  ];
}

async function requestFigures({ dir, runs }: House, effort: Effort): Promise<readonly Figure[]> {
  if (runs === 0) return [];
  const service = await startServiceProcess(dir.path);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const page = (offset: number): Promise<unknown> =>
      exchange(agent, `${service.url}/api/runs/?limit=${PAGE}&offset=${offset}`, null);
    const [newest] = (await page(0)) as readonly unknown[];
    const runId = textIn(newest, 'id');
    const last = Math.max(0, runs - PAGE);
    const each = async (
      name: string,
      act: () => Promise<unknown>,
      target: Target | null,
    ): Promise<readonly Figure[]> => {
      const latencies = await latenciesOf(act, effort.requests);
      const having = `${name} of ${runs.toLocaleString('en-US')} finished runs`;
      return [
        figure(`${having}, p50`, 'ms', [percentile(latencies, 0.5)], target),
        figure(`${having}, p99`, 'ms', [percentile(latencies, 0.99)]),
      ];
    };
    const target = atMost(runs, effort, TARGET_PAGE_MS);
    return [
      ...(await each('first history page', () => page(0), target)),
      ...(await each('last history page', () => page(last), target)),
      ...(await each('poll', () => exchange(agent, `${service.url}/api/councils/run/${runId}`, null), null)),
    ];
  } finally {
    agent.destroy();
    await service.stop();
  }
}

async function latenciesOf(act: () => Promise<unknown>, requests: number): Promise<readonly number[]> {
  const { latenciesMs } = await closedLoop({
    clients: 1,
    goesOn: (acts) => acts < requests,
    act: async () => {
      await act();
    },
  });
  return latenciesMs.slice(Math.floor(requests / 10));
}

/** A target is one for the most runs. */
function atMost(runs: number, { historyRuns }: Effort, target: Target): Target | null {
  return runs === historyRuns.at(-1) ? target : null;
}

/** Of each turn, from the first log to the last. */
function growthPercent(houses: readonly House[]): readonly number[] {
  const [first, last] = [houses.at(0), houses.at(-1)];
  if (first === undefined || last === undefined) return [];
  return first.startsMs.map((before, turn) => 100 * ((last.startsMs[turn] ?? Number.NaN) / before - 1));
}
