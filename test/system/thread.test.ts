import { expect } from 'chai';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { all, numbered } from '../eventlog/contract-bench.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { startWarmThread } from '../support/warm-threads.js';

describe('A thread that has served before', () => {
  let dir: TempDir;

  beforeEach(() => (dir = tempDir()));
  afterEach(() => dir.remove());

  const open = (file: string) => openEmbeddedLog({ file, startThread: startWarmThread });

  it('has let go of its file once it is closed, as a thread that has ended', async () => {
    const file = join(dir.path, 'log.sqlite');
    for (let life = 0; life < 10; life += 1) {
      const log = await open(file);
      await log.append(`run-${life}`, numbered(1), 'none');
      expect(await all(log.readAll(null))).to.have.length(life + 1);
      await log.close();
      expect(existsSync(`${file}-wal`)).to.equal(false);
    }
  });

  it('tells that a file cannot be opened, and serves the next', async () => {
    const spoilt = join(dir.path, 'spoilt.sqlite');
    writeFileSync(spoilt, 'no database at all');
    expect(await rejectionOf(open(spoilt))).to.be.instanceOf(LogUnreadable);
    const log = await open(join(dir.path, 'log.sqlite'));
    expect(await log.head()).to.equal(null);
    await log.close();
  });
});
