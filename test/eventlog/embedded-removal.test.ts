import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { openLogReadOnly } from '../../src/eventlog/embedded/read-only.js';
import type { EventLog, NewEvent } from '../../src/eventlog/port.js';
import { startChild } from '../support/child.js';
import { rejectionOf } from '../support/rejection.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK } from '../support/soak.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { all } from './contract-bench.js';

const REMOVER = fileURLToPath(new URL('../support/log-remover.js', import.meta.url));
const STREAMS = IS_SOAK ? 1_000 : 200;

describe('Embedded log: removed streams', () => {
  let dir: TempDir;
  let file: string;

  beforeEach(() => {
    dir = tempDir();
    file = join(dir.path, 'log.sqlite');
  });
  afterEach(() => dir.remove());

  const word = (n: number): string => `canary${String(n).padStart(5, '0')}z`;
  /** Fills streams in turn, with events of very different sizes. */
  const fill = async (log: EventLog, seed: number): Promise<void> => {
    const random = seededRandom(seed);
    for (let revision = 0; revision < 8; revision += 1)
      await Promise.all(
        Array.from({ length: STREAMS }, (_, n) => {
          const chars = random() < 0.1 ? 9_000 * random() : 900 * random();
          const data = JSON.stringify({ text: word(n).repeat(1 + chars / 12) });
          return log.append(`run-${n}`, [event(data)], revision === 0 ? 'none' : revision - 1);
        }),
      );
  };
  /** The numbers of the words that the files of a folder hold. */
  const words = (folder = dir.path): ReadonlySet<number> => {
    const texts = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => readFileSync(join(folder, name), 'latin1'));
    return new Set(texts.flatMap((text) => [...text.matchAll(/canary(\d{5})z/g)].map(([, n]) => Number(n))));
  };

  it('leave no byte in the files, whichever streams were removed before', async () => {
    const log = await openEmbeddedLog({ file });
    await fill(log, 1);
    const random = seededRandom(2);
    const left = Array.from({ length: STREAMS }, (_, n) => n);
    while (left.length > 1) {
      const gone = Array.from({ length: Math.min(10, left.length - 1) }, () =>
        left.splice(Math.floor(random() * left.length), 1),
      ).flat();
      await log.remove(gone.map((n) => `run-${n}`));
      expect([...words()].filter((n) => !left.includes(n))).to.deep.equal([]);
    }
    expect(await all(log.readStream(`run-${left[0]}`))).to.have.length(8);
    await log.close();
  });

  it('stay removed when the log is opened again, which finds no gap', async () => {
    const first = await openEmbeddedLog({ file });
    await fill(first, 3);
    await first.remove(['run-0', `run-${STREAMS - 1}`, 'run-never']);
    const head = await first.head();
    await first.close();
    const log = await openEmbeddedLog({ file });
    expect([await log.head(), await log.hasGaps()]).to.deep.equal([head, false]);
    for (const stream of ['run-0', `run-${STREAMS - 1}`, 'run-never']) {
      expect(await rejectionOf(all(log.readStream(stream)))).to.include({ code: 'log.stream-removed' });
      expect(await rejectionOf(log.append(stream, [event('{}')], 'none'))).to.include({ code: 'log.stream-removed' });
    }
    await log.append('run-new', [event('{}')], 'none');
    await log.close();
    const readOnly = openLogReadOnly(file);
    expect(readOnly.streams().get('run')).to.equal(STREAMS - 1);
    expect(readOnly.faults()).to.deep.equal([]);
    readOnly.close();
  });

  it('do not hide that a stored event is lost', async () => {
    const first = await openEmbeddedLog({ file });
    await fill(first, 4);
    await first.remove(['run-3']);
    await first.close();
    const database = new DatabaseSync(file);
    database.exec('DELETE FROM events WHERE position = 20');
    database.close();
    const log = await openEmbeddedLog({ file });
    expect(await log.hasGaps()).to.equal(true);
    await log.close();
  });

  it('can be removed from the log of an earlier version, which is also read as it is', async () => {
    const first = await openEmbeddedLog({ file });
    await fill(first, 5);
    await first.close();
    const database = new DatabaseSync(file);
    database.exec('DROP TABLE removed');
    database.close();
    const readOnly = openLogReadOnly(file);
    expect(await all(readOnly.readStream('run-1'))).to.have.length(8);
    readOnly.close();
    const log = await openEmbeddedLog({ file });
    await log.remove(['run-1']);
    expect(words().has(1)).to.equal(false);
    await log.close();
  });

  it('leave a backup that runs meanwhile, which then opens without a gap', async () => {
    const log = await openEmbeddedLog({ file });
    await fill(log, 6);
    mkdirSync(join(dir.path, 'backups'));
    const to = join(dir.path, '..', `backup-${randomUUID()}`);
    const gone: number[] = [];
    let removing: Promise<unknown> = Promise.resolve();
    await log.backup(to, {
      signal: new AbortController().signal,
      onProgress({ state }) {
        if (state !== 'copying' || gone.length >= 20) return;
        const n = gone.push(gone.length);
        removing = removing.then(async () => {
          await log.append(`leaf-${n}`, [event('{}')], 'none');
          await log.remove([`run-${n - 1}`]);
        });
      },
    });
    await removing;
    await log.close();
    const copy = await openEmbeddedLog({ file: join(to, 'log.sqlite') });
    expect(await copy.hasGaps()).to.equal(false);
    let removed = 0;
    for (const n of gone) {
      const events = await all(copy.readStream(`run-${n}`)).catch(() => null);
      if (events === null) {
        removed += 1;
        expect(await all(copy.readStream(`leaf-${n + 1}`))).to.have.length(1);
        expect(words(to).has(n)).to.equal(false);
      } else expect(events).to.have.length(8);
    }
    expect(removed).to.be.greaterThan(0);
    await copy.close();
  });

  it('leave no byte after a kill, once the log is opened again', async () => {
    for (let kill = 0; kill < (IS_SOAK ? 20 : 3); kill += 1) {
      const child = startChild(process.execPath, [REMOVER, file, String(kill)]);
      await child.waitFor((lines) => lines.filter((line) => line.startsWith('removing')).length > 3 + kill);
      await child.kill();
      const log = await openEmbeddedLog({ file });
      const gone = child.lines.filter((line) => line.startsWith('removed')).map((line) => line.split(' ')[1] ?? '');
      for (const stream of gone)
        expect(await rejectionOf(all(log.readStream(stream)))).to.include({ code: 'log.stream-removed' });
      const left = new Set<string>();
      for await (const { stream } of log.readAll(null)) left.add(stream);
      const texts = readFileSync(file, 'latin1') + readFileSync(`${file}-wal`, 'latin1');
      for (const [, name = ''] of texts.matchAll(/canary-(run-[0-9a-z-]+)!/g)) expect(left).to.include(name);
      await log.close();
    }
  });
});

function event(data: string): NewEvent {
  return { id: randomUUID(), type: 'Written', data, metadata: {} };
}
