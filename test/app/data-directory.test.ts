import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { DataDirectory } from '../../src/app/data-directory.js';
import { DataDirFailed, openDataDirectory } from '../../src/app/data-directory.js';
import { ConfigInvalid } from '../../src/errors.js';
import { DataDirHeld } from '../../src/eventlog/errors.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const HOLDER = fileURLToPath(new URL('../support/data-dir-holder.js', import.meta.url));
const ME = { pid: 4711, hostname: 'here', startedAt: '2026-01-02T03:04:05.678Z' };

describe('Data directory', () => {
  let dir: TempDir;
  const held: (DataDirectory | Child)[] = [];

  beforeEach(() => {
    dir = tempDir();
  });

  afterEach(async () => {
    for (const each of held.splice(0)) await ('release' in each ? each.release() : each.kill());
    dir.remove();
  });

  const open = (path: string): DataDirectory => {
    const dataDir = openDataDirectory(path, ME);
    held.push(dataDir);
    return dataDir;
  };

  const startHolder = (path: string): Child => {
    const child = startChild(process.execPath, [HOLDER, path]);
    held.push(child);
    return child;
  };

  it('is created with its folders if it is missing', () => {
    const path = join(dir.path, 'deep', 'data');
    const { logFile, viewsDir, tmpDir } = open(path);
    expect(logFile).to.equal(join(path, 'log.sqlite'));
    expect([viewsDir, tmpDir]).to.deep.equal([join(path, 'views'), join(path, 'tmp')]);
    expect(existsSync(viewsDir) && existsSync(tmpDir)).to.equal(true);
    expect(existsSync(logFile)).to.equal(false);
  });

  it('deletes the contents of tmp and nothing else', () => {
    open(dir.path).release();
    mkdirSync(join(dir.path, 'tmp', 'deep'));
    const files = ['tmp/upload', 'tmp/deep/upload', 'views/views.sqlite', 'log.sqlite'];
    for (const file of files) writeFileSync(join(dir.path, file), 'kept?');
    open(dir.path);
    expect(files.map((file) => existsSync(join(dir.path, file)))).to.deep.equal([false, false, true, true]);
  });

  it('is refused while held in this process, on one line that names the holder, and keeps tmp', () => {
    const { tmpDir, release } = open(dir.path);
    writeFileSync(join(tmpDir, 'upload'), 'in use');
    const error = refusalOf(() => openDataDirectory(dir.path, { ...ME, pid: 4712 }));
    expect(error).to.be.instanceOf(DataDirHeld);
    expect(error.message).to.include(dir.path).and.include('4711').and.include('here').and.include(ME.startedAt);
    expect(error.message).not.to.include('\n');
    expect(existsSync(join(tmpDir, 'upload'))).to.equal(true);
    release();
    release();
    open(dir.path);
  });

  it('is refused while another process holds it, and free once that one is killed', async () => {
    const first = startHolder(dir.path);
    await first.waitFor((lines) => lines.includes('held'));
    const second = startHolder(dir.path);
    expect(await second.ended).to.equal(0);
    expect(second.lines).to.have.length(1);
    expect(second.lines[0])
      .to.include(dir.path)
      .and.include(`process ${first.pid ?? 0} on ${hostname()}`);
    expect(refusalOf(() => openDataDirectory(dir.path, ME))).to.be.instanceOf(DataDirHeld);
    await first.kill();
    open(dir.path);
    expect(readFileSync(join(dir.path, 'holder.json'), 'utf8')).to.include('4711');
  });

  it('is refused without a name if the holder wrote none', () => {
    open(dir.path);
    for (const left of ['', '[', 'null', '{"pid":"a\\nb"}']) {
      writeFileSync(join(dir.path, 'holder.json'), left);
      expect(refusalOf(() => openDataDirectory(dir.path, ME)).message).to.match(/: another process holds it$/);
    }
  });

  it('is released even if the file that names its holder cannot be removed', () => {
    const { release } = open(dir.path);
    const file = join(dir.path, 'holder.json');
    rmSync(file);
    mkdirSync(file);
    release();
    expect(existsSync(file)).to.equal(true);
    rmSync(file, { recursive: true });
    open(dir.path);
  });

  it('is refused where no folder can be created', () => {
    const file = join(dir.path, 'file');
    writeFileSync(file, '');
    for (const path of [file, join(file, 'below'), '/dev/null/data']) {
      const error = refusalOf(() => openDataDirectory(path, ME));
      expect(error).to.be.instanceOf(ConfigInvalid);
      expect(error.message).to.include(path).and.include('DATA_DIR');
      expect(error.message).not.to.include('\n');
    }
  });

  it('says what to do about a corrupt lock file', () => {
    writeFileSync(join(dir.path, 'lock.sqlite'), 'x'.repeat(1_000));
    const error = refusalOf(() => openDataDirectory(dir.path, ME));
    expect(error).to.be.instanceOf(DataDirFailed);
    expect(error.message).to.match(/lock\.sqlite is corrupt \(.+\): remove it/);
    rmSync(join(dir.path, 'lock.sqlite'));
    open(dir.path);
  });

  describe('names the earlier instances', () => {
    const next = (hostname: string, instanceId: string): readonly string[] => {
      const dataDir = openDataDirectory(dir.path, { ...ME, hostname });
      const before = dataDir.recordInstance(instanceId);
      dataDir.release();
      return before;
    };

    it('all that ran on the same machine, and no others', () => {
      expect(next('here', 'one')).to.deep.equal([]);
      expect(next('here', 'two')).to.deep.equal(['one']);
      expect(next('here', 'three')).to.deep.equal(['one', 'two']);
      expect(next('elsewhere', 'four')).to.deep.equal([]);
      expect(next('elsewhere', 'five')).to.deep.equal(['four']);
    });

    it('the last thousand', () => {
      const predecessors = Array.from({ length: 1_000 }, (_, index) => `old-${index}`);
      const left = { instanceId: 'last', hostname: 'here', predecessors };
      writeFileSync(join(dir.path, 'instance.json'), JSON.stringify(left));
      const before = next('here', 'next');
      expect(before).to.have.length(1_000);
      expect([before[0], before.at(-1)]).to.deep.equal(['old-1', 'last']);
    });

    it('that a file of an earlier version names, and none if the file is corrupt', () => {
      for (const [left, expected] of [
        ['{"instanceId":"one","hostname":"here"}', ['one']],
        ['{"instanceId":"one","hostname":"here","predecessors":7}', ['one']],
        ['{"instanceId":["one"],"hostname":"here","predecessors":["zero",1,"a b"]}', ['zero']],
        ['{"instanceId":"one"', []],
        ['', []],
      ] as const) {
        writeFileSync(join(dir.path, 'instance.json'), left);
        expect(next('here', 'two'), left).to.deep.equal(expected);
      }
    });
  });
});

function refusalOf(act: () => unknown): Error {
  try {
    act();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('Not refused');
}
