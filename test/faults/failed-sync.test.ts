import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { failingSyncs, onFailingSyncs } from '../support/failing-syncs.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

const define = (): void => {
  describe('A sync of the log that fails', () => {
    let dir: TempDir;
    let child: Child | null = null;

    beforeEach(() => {
      dir = tempDir();
    });
    afterEach(async () => {
      await child?.kill();
      dir.remove();
    });

    it('is never repeated: the process ends with one log line, and every acknowledged event is kept', async () => {
      const syncs = failingSyncs(dir.path);
      const dataDir = join(dir.path, 'data');
      const env = { PATH: process.env['PATH'], DATA_DIR: dataDir, PORT: '0', MODEL_PROVIDER: 'offline', ...syncs.env };
      child = startChild(process.execPath, [MAIN], env);
      const { lines } = child;
      await child.waitFor(() => lines.some((line) => line.startsWith('listening on ')));
      const url = lines.find((line) => line.startsWith('listening on '))?.slice('listening on '.length) ?? '';
      const rest = restClient(url);
      const acknowledged = await rest.start();
      await rest.until(acknowledged, isOver);
      syncs.begin();
      const answer = await rest.post('/api/councils/run', { input_topic: 'Trees' }).catch(() => null);
      expect(answer?.status ?? 503).to.equal(503);
      const { signal, stderr } = await child.exit;
      expect([signal, stderr]).to.deep.equal(['SIGKILL', '']);
      const told = lines.filter((line) => line.includes('"level":50'));
      expect(told).to.have.length(1);
      expect(told[0]).to.include('the event log failed: stopping');
      const ofLog = syncs.tried().filter((file) => file.includes('log.sqlite'));
      expect(ofLog).to.deep.equal([join(dataDir, 'log.sqlite-wal')]);
      expect(existsSync(join(dataDir, 'log.sqlite-wal'))).to.equal(true);

      const again = await startService({ dataDir });
      expect((await restClient(again.url).poll(acknowledged)).status).to.equal('completed');
      await again.stop();
    });
  });
};

onEmbeddedLog(() => onFailingSyncs(define));
