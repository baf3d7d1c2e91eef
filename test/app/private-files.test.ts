import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { isOver, restClient } from '../support/rest-client.js';
import { addressOf } from '../support/served-address.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { sample } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** Files of a service with an embedded log while it serves. */
const KEPT = [
  ...['holder.json', 'lock.sqlite', 'log.sqlite', 'log.sqlite-head', 'log.sqlite-wal', 'tmp', 'views'],
  ...['views/views.sqlite', 'views/views.sqlite-shm', 'views/views.sqlite-wal'],
];

// Windows has no such modes.
if (process.platform !== 'win32') {
  describe('The files of a service', () => {
    let dir: TempDir;
    let path: string;
    let child: Child;

    beforeEach(() => {
      dir = tempDir();
      path = join(dir.path, 'deep', 'data');
    });
    afterEach(async () => {
      await child.kill();
      dir.remove();
    });

    /** Starts a service and lets it complete a run. */
    async function serve(umask: string): Promise<void> {
      const script = `umask ${umask}; exec "$0" "$1"`;
      const environment = { PATH: process.env['PATH'], PORT: '0', DATA_DIR: path };
      child = startChild('/bin/sh', ['-c', script, process.execPath, MAIN], environment);
      const rest = restClient(await addressOf(child));
      await rest.until(await rest.start(), isOver);
    }

    const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);
    const wantedMode = (file: string): string => (statSync(file).isDirectory() ? '700' : '600');
    const warnings = (): readonly string[] => child.lines.filter((line) => line.includes('"level":40'));

    for (const umask of sample(['000', '777', '022'], 1)) {
      it(`cannot be read by other users of the machine under the umask ${umask}`, async () => {
        await serve(umask);
        const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
        expect(files).to.include.members(KEPT);
        expect(modeOf(path)).to.equal('700');
        for (const each of files) {
          const file = join(path, each);
          expect([each, modeOf(file)]).to.deep.equal([each, wantedMode(file)]);
        }
        expect(warnings()).to.deep.equal([]);
      });
    }

    it('are private even in an older folder that others may read, of which the service warns once', async () => {
      mkdirSync(path, { recursive: true });
      chmodSync(path, 0o755);
      await serve('022');
      expect(modeOf(path)).to.equal('755');
      expect(modeOf(join(path, 'log.sqlite'))).to.equal('600');
      expect(warnings()).to.have.length(1);
      expect(warnings()[0]).to.include(path).and.include('chmod');
    });
  });
}
