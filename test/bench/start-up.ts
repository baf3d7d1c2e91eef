/** Measures the start of the service, with and without finished runs in its log. */
import { instantModel } from '../support/instant-model.js';
import { startServiceProcess } from '../support/service-process.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { copiedRuns } from './copied-runs.js';
import type { Part } from './figure.js';
import { figure } from './figure.js';

const TARGET = { atMost: 2_000 };

export const startUpPart: Part = {
  name: 'start-up',
  method: ({ starts }) =>
    `From the start of a process of dist/src/main.js to its ready line, default settings, after a clean stop: ${starts} ` +
    `starts of each log in turns. The finished runs are copies of one run. The first start folds the whole log.`,
  async measure({ startUpRuns, starts }) {
    const logs: { readonly dir: TempDir; readonly runs: number; readonly firstMs: number; readonly ms: number[] }[] =
      [];
    try {
      for (const runs of startUpRuns) {
        const dir = tempDir();
        if (runs > 0) await copiedRuns(dir.path, { model: instantModel(), runs });
        logs.push({ dir, runs, firstMs: await startUpMs(dir), ms: [] });
      }
      for (let i = 0; i < starts; i += 1) for (const { dir, ms } of logs) ms.push(await startUpMs(dir));
      return logs.flatMap(({ runs, firstMs, ms }) => [
        figure(`start-up with ${runs.toLocaleString('en-US')} finished runs`, 'ms', ms, TARGET),
        figure(`first start with ${runs.toLocaleString('en-US')} finished runs`, 'ms', [firstMs]),
      ]);
    } finally {
      for (const { dir } of logs) dir.remove();
    }
  },
};

async function startUpMs({ path }: TempDir): Promise<number> {
  const service = await startServiceProcess(path);
  await service.stop();
  return service.startUpMs;
}
