import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from '../support/child.js';
import { freePort } from '../support/free-port.js';
import { councilKeys } from '../support/council-command.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { tempDir } from '../support/temp-dir.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The lines that a user types, from the README of the keys. */
function typedLines(): readonly string[] {
  const readme = readFileSync(join(ROOT, 'src/keys/README.md'), 'utf8');
  const [, block = ''] = /## Keys in five lines\n[^`]*```console\n([^`]*)```/.exec(readme) ?? [];
  return block
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^\$ /, ''));
}

// The lines call curl.
if (spawnSync('curl', ['--version']).status === 0) {
  onEmbeddedLog(() => {
    describe('Keys in five lines', () => {
      it('work as written in the README, from the first key to its revocation', async () => {
        const dir = tempDir();
        const port = await freePort();
        const lines = typedLines().map((line) => line.replace('127.0.0.1:8000', `127.0.0.1:${port}`));
        expect(lines).to.have.length(5);
        const [first = '', start = '', ...others] = lines;
        // A person waits until the service is ready.
        const isReady = `until curl -s -o "$DATA_DIR/ready" http://127.0.0.1:${port}/api/health; do sleep 0.1; done`;
        const script = [
          'set -e',
          `cd "${ROOT}"`,
          first,
          start.replace('&', '>&2 &'),
          isReady,
          ...others,
          'kill $!',
          'wait $!',
        ];
        const DATA_DIR = join(dir.path, 'data');
        const quiet = { HOME: dir.path, npm_config_update_notifier: 'false', LOG_LEVEL: 'silent' };
        const env = { PATH: process.env['PATH'], ...quiet, DATA_DIR, PORT: String(port) };
        const { code, stdout, stderr } = await startChild('sh', ['-c', script.join('\n')], env).exit;
        const listed = await councilKeys(['list'], { DATA_DIR });
        dir.remove();
        expect([code, stdout], stderr).to.deep.equal([0, '[]']);
        expect(stderr).to.include('Key "ci" is revoked');
        expect(listed.stdout)
          .to.match(/^ann +read,run,.* valid +used \d/m)
          .and.match(/^ci +read,run +revoked .* by ann/m);
      });
    });
  });
}
