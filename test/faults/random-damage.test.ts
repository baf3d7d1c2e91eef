import { expect } from 'chai';
import { join } from 'node:path';
import type { CrashImage } from './damaged-starts.js';
import { crashImage, damagedStart } from './damaged-starts.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { IS_SOAK } from '../support/soak.js';

const FIRST_SEED = Number(process.env['SEED'] ?? (IS_SOAK ? Date.now() % 1_000_000 : 1));
const SEEDS = Number(process.env['SEEDS'] ?? (IS_SOAK ? 1_000 : 4));

onEmbeddedLog(() =>
  describe('A folder with random damage after a kill', () => {
    let dir: TempDir;
    let image: CrashImage;

    before(async () => {
      dir = tempDir();
      image = await crashImage(join(dir.path, 'image'));
    });
    after(() => dir.remove());

    it(`is served without loss, reported run by run, or refused in one line (seeds from ${FIRST_SEED})`, async () => {
      const table = new Map<string, Record<string, number>>();
      for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
        const { target, kind, verdict, recoveryMs } = await damagedStart(image, seed).catch((cause: unknown) => {
          throw new Error(`SEED=${seed}`, { cause });
        });
        const row = table.get(`${kind} ${target}`) ?? { starts: 0, served: 0, told: 0, refused: 0, slowestMs: 0 };
        row['starts'] = (row['starts'] ?? 0) + 1;
        row[verdict] = (row[verdict] ?? 0) + 1;
        row['slowestMs'] = Math.max(row['slowestMs'] ?? 0, Math.round(recoveryMs));
        table.set(`${kind} ${target}`, row);
      }
      if (IS_SOAK) process.stdout.write(`${tableOf(table)}\n`);
      expect([...table.values()].reduce((sum, { starts = 0 }) => sum + starts, 0)).to.equal(SEEDS);
    });
  }),
);

/** Prints the counts as in the README. Nothing is lost, because the test would have failed. */
function tableOf(table: ReadonlyMap<string, Readonly<Record<string, number>>>): string {
  const lines = [...table].sort().map(([fault, { starts, served, told, refused, slowestMs }]) => {
    return `| ${fault} | ${starts} | ${served} | ${told} | ${refused} | 0 | ${slowestMs} ms |`;
  });
  return ['| fault | starts | served whole | told by run | refused | lost | slowest start |', ...lines].join('\n');
}
