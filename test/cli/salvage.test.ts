import { expect } from 'chai';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrashImage } from '../faults/damaged-starts.js';
import { crashImage } from '../faults/damaged-starts.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import { changeLog } from '../support/damaged-log.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine } from '../support/open-engine.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const PAGE_BYTES = 4096;
/** First byte of the pages of an index (SQLite's file format, section 1.6). */
const INDEX_PAGES = [0x02, 0x0a];

onEmbeddedLog(() =>
  describe('council salvage', () => {
    let bench: CouncilBench;
    let image: CrashImage;

    before(async () => {
      bench = councilBench();
      image = await crashImage(join(bench.path, 'image'));
    });
    after(() => bench.clear());

    const copied = (name: string): string => bench.copied(image.path, name);
    const salvage = (folder: string, ...words: readonly string[]) =>
      bench.council(['salvage', ...words], { env: { DATA_DIR: folder } });
    /** The ids of the runs that a service serves from a folder, each as it was recorded. */
    const served = async (path: string): Promise<readonly string[]> => {
      const engine = await openTestEngine({ path, model: instantModel() });
      await engine.recovery.unfinished();
      const ids: string[] = [];
      for (const [id, events] of image.runs) {
        const record = await engine.queries.record(id, { from: 0, limit: 1_000 });
        if (record === null) continue;
        const found: string[] = [];
        for await (const event of record.events()) found.push(JSON.stringify(event));
        expect(found).to.deep.equal(events);
        expect((await engine.audits.verify(id))?.firstDifference).to.equal(null);
        ids.push(id);
      }
      await engine.stop();
      return ids;
    };

    it('copies all of an intact log, with its journal, into a new log that a service can use', async () => {
      const to = join(bench.path, 'whole-new');
      const env = { DATA_DIR: copied('whole') };
      const { code, stdout } = await bench.command(['salvage', '--to', to], { env });
      expect(code, stdout).to.equal(0);
      expect(stdout).to.match(/^Written to .*: \d+ events in \d+ records; 0 omitted\n$/);
      expect(await served(to)).to.deep.equal([...image.runs.keys()]);
    });

    it('omits the records of a corrupt page, one line each, and leaves the corrupt log unchanged', async () => {
      const from = copied('broken');
      const file = join(from, 'log.sqlite');
      const bytes = readFileSync(file);
      const [touched = ''] = [...image.runs.keys()].slice(7);
      const eventId: unknown = Reflect.get(JSON.parse(image.runs.get(touched)?.[1] ?? '{}'), 'id');
      const at = Math.floor(bytes.indexOf(String(eventId)) / PAGE_BYTES) * PAGE_BYTES;
      writeFileSync(file, bytes.fill(0, at, at + PAGE_BYTES));
      const to = join(bench.path, 'broken-new');
      const { code, stdout } = await salvage(from, '--to', to);
      expect(code, stdout).to.equal(1);
      const left = [...stdout.matchAll(/^omitted: run ([-0-9a-f]+): event \d+: .+$/gm)].map(([, id]) => id);
      expect(left).to.include(touched);
      const rest = await served(to);
      expect([...rest, ...left].sort()).to.deep.equal([...image.runs.keys()].sort());
      expect(readFileSync(file).equals(bytes)).to.equal(true);
    });

    it('copies all of a log whose indexes are corrupt', async () => {
      const from = copied('unindexed');
      const file = join(from, 'log.sqlite');
      changeLog(from, 'PRAGMA wal_checkpoint(TRUNCATE)');
      const bytes = readFileSync(file);
      for (let at = PAGE_BYTES; at < bytes.length; at += PAGE_BYTES)
        if (INDEX_PAGES.includes(bytes[at] ?? 0)) bytes.fill(0xa5, at, at + PAGE_BYTES);
      writeFileSync(file, bytes);
      const to = join(bench.path, 'unindexed-new');
      const { code, stdout, stderr } = await salvage(from, '--to', to);
      expect(stderr).to.equal('');
      expect(code, stdout).to.equal(0);
      expect(await served(to)).to.deep.equal([...image.runs.keys()]);
    });

    it('refuses a folder that holds a log, and a missing folder', async () => {
      const from = copied('taken');
      const taken = await salvage(from, '--to', from);
      expect([taken.code, taken.stderr]).to.deep.equal([2, `Cannot use folder "${from}": it already holds a log\n`]);
      expect((await salvage(from)).code).to.equal(2);
      expect((await salvage(join(from, 'tmp'), '--to', join(bench.path, 'none'))).code).to.equal(2);
      expect(existsSync(join(bench.path, 'none'))).to.equal(false);
    });
  }),
);
