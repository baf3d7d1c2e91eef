import { expect } from 'chai';
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

onEmbeddedLog(() =>
  describe('The data folder of a running service', () => {
    let dir: TempDir;
    let data: string;
    let child: Child;

    beforeEach(() => {
      dir = tempDir();
      data = join(dir.path, 'data');
      child = start();
    });
    afterEach(async () => {
      await child.kill();
      dir.remove();
    });

    const start = (): Child =>
      startChild(process.execPath, [MAIN], { PATH: process.env['PATH'], DATA_DIR: data, PORT: '0' });
    const urlOf = async ({ waitFor, lines }: Child): Promise<string> => {
      await waitFor(() => lines.some((line) => line.startsWith('listening on ')));
      return lines.find((line) => line.startsWith('listening on '))?.slice('listening on '.length) ?? '';
    };
    const faults = (): readonly string[] => child.lines.filter((line) => /"level":[56]0/.test(line));

    it('may be unreachable at SIGTERM: the service exits with 0 and loses nothing', async () => {
      const rest = restClient(await urlOf(child));
      const before = await rest.start();
      await rest.until(before, isOver);
      // A link to itself stands for a folder without permissions, which root would not notice.
      renameSync(data, `${data}-2`);
      symlinkSync(data, data);
      const meanwhile = await rest.start();
      await rest.until(meanwhile, isOver);
      child.signal('SIGTERM');
      const { code, stderr } = await child.exit;
      expect([code, stderr]).to.deep.equal([0, '']);
      rmSync(data);
      renameSync(`${data}-2`, data);
      const later = await startService({ dataDir: data });
      const again = restClient(later.url);
      for (const runId of [before, meanwhile]) expect((await again.poll(runId)).status).to.equal('completed');
      await later.stop();
    });

    it('ends the service with one line when it is deleted, and no start is accepted afterwards', async () => {
      const rest = restClient(await urlOf(child));
      await rest.until(await rest.start(), isOver);
      rmSync(data, { recursive: true });
      const answers = Array.from({ length: 10 }, () =>
        rest.post('/api/councils/run', { input_topic: 'Trees' }).catch(() => null),
      );
      for (const answer of await Promise.all(answers)) expect(answer?.status ?? 503).to.equal(503);
      const { code, signal, stderr } = await child.exit;
      expect([code, signal, stderr]).to.deep.equal([1, null, '']);
      expect(faults()).to.have.length(1);
      expect(faults()[0]).to.include('the event log failed: stopping').and.include('was removed');
    });
  }),
);
