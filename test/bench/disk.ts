/** What a run leaves on the disk. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { offlineModel } from '../../src/models/offline.js';
import type { LanguageModel } from '../../src/models/port.js';
import { instantModel } from '../support/instant-model.js';
import { tempDir } from '../support/temp-dir.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { filled } from './filled.js';

export const diskPart: Part = {
  name: 'disk',
  method: ({ diskRuns }) =>
    `Sizes of the files after a clean stop, journals included, over ${diskRuns} finished runs: with the instant model ` +
    `(drafts of 7 characters: what the record itself takes) and with the offline model.`,
  async measure(effort) {
    const instant = await bytesPerRun('instant model', instantModel(), effort);
    return [...instant, ...(await bytesPerRun('offline model', offlineModel({ system: nodeSystem() }), effort))];
  },
};

async function bytesPerRun(
  name: string,
  model: LanguageModel,
  { diskRuns, fillSeconds }: Effort,
): Promise<readonly Figure[]> {
  const dir = tempDir();
  try {
    const runs = await filled(dir.path, { model, runs: diskRuns, seconds: fillSeconds });
    return [
      figure(`disk, ${name}: log`, 'bytes/run', [sizeOf(join(dir.path, 'log.sqlite')) / runs]),
      figure(`disk, ${name}: views`, 'bytes/run', [sizeOf(join(dir.path, 'views', 'views.sqlite')) / runs]),
    ];
  } finally {
    dir.remove();
  }
}

/** Bytes of a database and its journal. */
function sizeOf(file: string): number {
  const journal = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return statSync(file).size + journal;
}
