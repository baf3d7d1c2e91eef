import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from '../support/child.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine } from '../support/open-engine.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { IS_SOAK } from '../support/soak.js';

const CHILD = fileURLToPath(new URL('../support/runs-child.js', import.meta.url));
const KILLS = IS_SOAK ? 40 : 1;
const AT_ONCE = 20;
/**
 * The number of runs that end before each kill, enough for several writes of rows, one of which the kill interrupts.
 */
const RUNS = 60;

onEmbeddedLog(() => {
  describe('The read models of a process killed under load', () => {
    it('equal a new fold of the log after a kill at any time', async () => {
      const dir = tempDir();
      const acknowledged: string[] = [];
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const child = startChild(process.execPath, [CHILD, dir.path, String(AT_ONCE)]);
        await child.waitFor((lines) => lines.length >= RUNS + kill * 7);
        await child.kill();
        acknowledged.push(...child.lines);
        const listed = await allListed(dir.path);
        rmSync(join(dir.path, 'views'), { recursive: true });
        expect(listed, `after kill ${kill}`).to.deep.equal(await allListed(dir.path));
        const completed = new Set(listed.filter(({ status }) => status === 'completed').map(({ id }) => id));
        for (const runId of acknowledged) expect(completed.has(runId), `end of run ${runId}`).to.equal(true);
      }
      dir.remove();
    });
  });
});

/** Every run as the list shows it. The service does not resume the runs. */
async function allListed(path: string) {
  const engine = await openTestEngine({ path, model: instantModel() });
  await engine.recovery.unfinished();
  const listed = await engine.queries.list({ limit: 100_000, offset: 0 });
  await engine.stop();
  expect(engine.faults).to.deep.equal([]);
  return listed;
}
