/** How long a start takes, and whether it grows with what lies in the log. */
import { instantModel } from '../support/instant-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import type { Effort, Part } from './figure.js';
import { figure } from './figure.js';
import { filled } from './filled.js';
import { startServiceProcess } from './service-process.js';

/** "Must not grow" (issue 3), with room for the noise of a start: the slower of two equal ones is rarely this much slower. */
const TARGET_GROWTH_PERCENT = { atMost: 10 };

export const startUpPart: Part = {
  name: 'start-up',
  method: ({ starts }) =>
    `From the start of a process of dist/src/main.js to its ready line, default settings; ${starts} starts of each data ` +
    `directory in turns, after a clean stop. Growth is that from the smaller to the larger of the two logs that hold runs, turn by turn.`,
  async measure(effort) {
    const filledDirs: Filled[] = [];
    try {
      for (const runs of [0, ...effort.startUpRuns]) filledDirs.push(await fill(runs, effort));
      for (let i = 0; i < effort.starts; i += 1)
        for (const each of filledDirs) each.timesMs.push(await startUpMs(each));
      const figures = filledDirs.map(({ runs, timesMs }) =>
        figure(`start-up with ${runs.toLocaleString('en-US')} finished runs`, 'ms', timesMs),
      );
      return [...figures, figure('start-up: growth', '%', growthPercent(filledDirs.slice(1)), TARGET_GROWTH_PERCENT)];
    } finally {
      for (const { dir } of filledDirs) dir.remove();
    }
  },
};

interface Filled {
  readonly dir: TempDir;
  readonly runs: number;
  readonly timesMs: number[];
}

async function fill(runs: number, { fillSeconds }: Effort): Promise<Filled> {
  const dir = tempDir();
  const finished = await filled(dir.path, { model: instantModel(), runs, seconds: fillSeconds });
  return { dir, runs: finished, timesMs: [] };
}

async function startUpMs({ dir }: Filled): Promise<number> {
  const service = await startServiceProcess(dir.path);
  await service.stop();
  return service.startUpMs;
}

/** Of each turn, from the first log to the last. */
function growthPercent(dirs: readonly Filled[]): readonly number[] {
  const [first, last] = [dirs.at(0), dirs.at(-1)];
  if (first === undefined || last === undefined) return [];
  return first.timesMs.map((before, turn) => 100 * ((last.timesMs[turn] ?? Number.NaN) / before - 1));
}
