import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startServiceProcess } from '../support/service-process.js';
import type { CouncilBench } from '../support/council-command.js';
import { commandHere, councilBench } from '../support/council-command.js';
import { damageEvent } from '../support/damaged-log.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

onEmbeddedLog(() =>
  describe('council check', () => {
    let bench: CouncilBench;
    /** Id of the run's first event. */
    let requested: string;

    before(async () => {
      bench = councilBench();
      const service = await startServiceProcess(bench.dataDir);
      const client = restClient(service.url);
      const { run_id: runId } = await client.until(await client.start(), isOver);
      const page = await client.get(`/api/runs/${runId}/events`);
      requested = client.read(page, 200, 'run-events-page.json').events[0]?.id ?? '';
      process.kill(service.pid, 'SIGKILL');
      await service.stop();
    });
    after(() => bench.clear());

    const copied = (name: string): string => bench.copied(bench.dataDir, name);
    const check = (folder: string, ...words: readonly string[]) =>
      bench.council(['check', ...words], { env: { DATA_DIR: folder } });

    it('reports the log of a killed service as intact, and changes nothing', async () => {
      const { code, stdout } = await bench.command(['check'], { env: { DATA_DIR: copied('whole') } });
      expect(code, stdout).to.equal(0);
      expect(stdout).to.match(/events in \d+ streams?, the last at position \d+\nThe log is intact\n$/);
    });

    it('reports how many events are missing without the journal, until --accept-loss', async () => {
      const folder = copied('lost');
      rmSync(join(folder, 'log.sqlite-wal'));
      const lost = await check(folder);
      expect(lost.code).to.equal(1);
      expect(lost.stdout).to.match(
        /it ends at event 0: \d+ acknowledged after that are missing\nThe log is not intact\. Restore what is missing, or accept/,
      );
      expect((await check(folder, '--accept-loss')).code).to.equal(0);
      expect((await check(folder)).code).to.equal(0);
    });

    it('names the event with a wrong hash, and exits 1 also without a reader', async () => {
      const folder = copied('forged');
      damageEvent(folder, requested, ['Trees', 'Frees']);
      const { code, stdout } = await check(folder);
      expect(code).to.equal(1);
      expect(stdout).to.match(/event 0 of run-[-0-9a-f]+: its hash does not follow/);

      const [gone, full] = ['EPIPE', 'ENOSPC'].map(async (fault) => {
        const error = Object.assign(new Error('no space left'), { code: fault });
        const stdout = { write: (_text: unknown, done: (error: Error) => void) => done(error) };
        return await commandHere(['check'], { env: { DATA_DIR: folder } }, { stdout });
      });
      expect(await gone, 'without a reader').to.include({ code: 1, stderr: '' });
      expect(await full).to.include({ code: 1, stderr: 'Cannot write the output: no space left\n' });
    });

    it('refuses while a service runs and names it, without a folder, and with wrong words', async () => {
      const folder = copied('running');
      const service = await startService({ dataDir: folder });
      for (const words of [[], ['--accept-loss']]) {
        const { code, stderr } = await check(folder, ...words);
        expect(code, stderr).to.equal(5);
        expect(stderr).to.include(`process ${process.pid} on `);
      }
      await service.stop();
      expect((await check(join(bench.path, 'none'))).code).to.equal(2);
      expect((await check(folder, '--accept-losses')).code).to.equal(2);
    });
  }),
);
