import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataDirFailed } from '../../src/app/data-directory.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import type { CrashImage } from './damaged-starts.js';
import { crashImage } from './damaged-starts.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine } from '../support/open-engine.js';
import { rejectionOf } from '../support/rejection.js';
import { onSmallDisks } from '../support/small-disk.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const GARBAGE = Buffer.alloc(30_000, 0x5a);

onEmbeddedLog(() =>
  describe('An incomplete folder after a kill', () => {
    let dir: TempDir;
    let image: CrashImage;
    let path: string;

    before(async () => {
      dir = tempDir();
      image = await crashImage(join(dir.path, 'image'));
    });
    after(() => dir.remove());
    beforeEach(() => {
      path = join(dir.path, 'copy');
      rmSync(path, { recursive: true, force: true });
      cpSync(image.path, path, { recursive: true });
    });

    const open = (): Promise<TestEngine> => openTestEngine({ path, model: instantModel() });

    const refused: readonly (readonly [title: string, spoil: (file: string) => void, says: RegExp])[] = [
      ['its journal removed', (log) => rmSync(`${log}-wal`), /acknowledged after that are missing: restore all of it/],
      ['its journal emptied', (log) => truncateSync(`${log}-wal`), /acknowledged after that are missing/],
      ['its journal cut', (log) => truncateSync(`${log}-wal`, 20_000), /acknowledged after that are missing/],
      ['its log cut to nothing', (log) => truncateSync(log), /the file is empty: restore it/],
      [
        'garbage for its log',
        (log) => writeFileSync(log, GARBAGE),
        /restore it from a backup, or copy its intact records/,
      ],
      ['a folder for its log', (log) => folderFor(log), /unable to open/],
      ['a folder for its journal', (log) => folderFor(`${log}-wal`), /unable to open/],
    ];
    for (const [title, spoil, says] of refused) {
      it(`is refused in one line with ${title}`, async () => {
        spoil(join(path, 'log.sqlite'));
        const error = await rejectionOf(open());
        expect(error).to.be.instanceOf(LogUnreadable);
        expect(String(error)).to.match(says).and.not.include('\n');
      });
    }

    const served: readonly (readonly [title: string, spoil: (views: string) => void])[] = [
      ['garbage for its views', (views) => writeFileSync(views, GARBAGE)],
      ['a folder for its views', folderFor],
      [
        'garbage for its search index',
        (views) => writeFileSync(views.replace('views.sqlite', 'passages.sqlite'), GARBAGE),
      ],
      ['its views cut', (views) => truncateSync(views, 5_000)],
    ];
    for (const [title, spoil] of served) {
      it(`is served without loss with ${title}`, async () => {
        spoil(join(path, 'views', 'views.sqlite'));
        const engine = await open();
        await engine.recovery.unfinished();
        const rows = await engine.queries.list({ limit: 200, offset: 0 });
        await engine.stop();
        expect(rows.map(({ id }) => id).sort()).to.deep.equal([...image.runs.keys()].sort());
      });
    }

    onSmallDisks(() =>
      it('is refused in one line if it is read-only', async () => {
        spawnSync('mount', ['--bind', path, path]);
        spawnSync('mount', ['-o', 'remount,ro,bind', path]);
        try {
          const error = await rejectionOf(open());
          expect(error).to.be.instanceOf(DataDirFailed);
          expect(String(error)).to.include('EROFS').and.not.include('\n');
        } finally {
          spawnSync('umount', [path]);
        }
      }),
    );
  }),
);

function folderFor(file: string): void {
  rmSync(file, { force: true });
  mkdirSync(file);
}
