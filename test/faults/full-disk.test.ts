import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from '../support/child.js';
import { openLogFile } from '../../src/eventlog/embedded/file.js';
import type { StoredAppend } from '../../src/eventlog/embedded/messages.js';
import { EmbeddedStore } from '../../src/eventlog/embedded/store.js';
import { heldModel } from '../support/instant-model.js';
import { checkRecord } from '../support/record-of.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { SmallDisk } from '../support/small-disk.js';
import { onSmallDisks, smallDisk } from '../support/small-disk.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { pdfWith, upload } from '../support/upload-client.js';
import { rejectionOf } from '../support/rejection.js';
import { soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const MiB = 1024 * 1024;

const onEmbeddedLogs = (define: () => void): void => onEmbeddedLog(() => onSmallDisks(define));

onEmbeddedLogs(() =>
  describe('A full disk', () => {
    let disk: SmallDisk;
    let service: RunningService;
    let rest: RestClient;

    beforeEach(() => {
      disk = smallDisk(12 * MiB);
    });
    afterEach(async () => {
      await service.stop();
      disk.remove();
    });

    /** @param held calls of the model that get no answer until the test releases them */
    const serve = async (held: Promise<void> = Promise.resolve()): Promise<void> => {
      service = await startService({ dataDir: join(disk.path, 'data'), model: heldModel(held) });
      rest = restClient(service.url);
    };
    const expectFull = (reply: Reply): void => {
      expect(rest.problem(reply, 503).detail).to.include('disk of the event log is full');
      expect(Number(reply.headers.get('Retry-After'))).to.be.greaterThan(0);
    };
    const startRefused = async (): Promise<void> =>
      expectFull(await rest.post('/api/councils/run', { input_topic: 'Trees' }));
    /** Starts runs that wait for their model, fills the disk, and then answers the calls. */
    const heldUp = async (): Promise<readonly string[]> => {
      let letGo = (): void => undefined;
      await serve(new Promise((resolve) => (letGo = resolve)));
      const ids = await Promise.all(Array.from({ length: 20 }, () => rest.start()));
      disk.fill();
      letGo();
      await untilTrue(async () => (await rest.get('/api/health/ready')).status === 503);
      return ids;
    };
    const listed = async (): Promise<readonly string[]> =>
      rest
        .read(await rest.get('/api/runs/?limit=200'), 200, 'history-list.json')
        .map(({ id }) => id)
        .sort();

    it('refuses starts, saves and uploads with 503, serves reads, and recovers once space is free', async () => {
      await serve();
      const done = await rest.start();
      await rest.until(done, isOver);
      disk.fill();
      await startRefused();
      expectFull(await rest.post('/api/councils/', { name: 'Mine', nodes: [{ id: 'a' }] }));
      const uploadedAt = await upload(service.url, pdfWith(['Trees grow.']));
      expect([uploadedAt.status, uploadedAt.headers.has('Retry-After')]).to.deep.equal([503, true]);
      expectFull(await rest.get('/api/health/ready'));
      expect((await rest.poll(done)).status).to.equal('completed');
      expect(await listed()).to.deep.equal([done]);
      for (const path of ['events', 'state', 'verify']) {
        expect((await rest.get(`/api/runs/${done}/${path}`)).status, path).to.equal(200);
      }
      disk.clear();
      await untilTrue(async () => (await rest.get('/api/health/ready')).status === 200);
      const next = await rest.start();
      await rest.until(next, isOver);
      expect((await upload(service.url, pdfWith(['Trees grow.']))).status).to.equal(200);
      expect(await listed()).to.deep.equal([done, next].sort());
    });

    soakIt('delays runs, which continue without a repeated event when space is free', async () => {
      const ids = await heldUp();
      await startRefused();
      expect(await listed()).to.deep.equal([...ids].sort());
      disk.clear();
      for (const id of ids) {
        expect((await rest.until(id, isOver)).status).to.equal('completed');
        await checkRecord(service.context.log, id);
      }
      expect(await listed()).to.deep.equal([...ids].sort());
      const told = [...service.lines.map(({ msg }) => msg), ...service.faults.map((fault) => JSON.stringify(fault))];
      expect(told.filter((line) => line.includes('has room again'))).to.have.length(1);
    });

    it('loses no acknowledged event when the service stops during it and starts later', async () => {
      const ids = await heldUp();
      await service.stop();
      disk.fill();
      const refused = await rejectionOf(startService({ dataDir: join(disk.path, 'data') }));
      expect(String(refused)).not.to.include('\n');
      disk.clear();
      await serve();
      for (const id of ids) expect((await rest.until(id, isOver)).status).to.equal('completed');
      expect(await listed()).to.deep.equal([...ids].sort());
    });

    it('ends a start with exit code 1 and one line, in a new folder and in a used one', async () => {
      await serve();
      await service.stop();
      disk.fill();
      for (const folder of ['data', 'new']) {
        const env = { PATH: process.env['PATH'], PORT: '0', DATA_DIR: join(disk.path, folder) };
        const { code, stdout, stderr } = await startChild(process.execPath, [MAIN], env).exit;
        expect([code, stdout]).to.deep.equal([1, '']);
        expect(stderr.trim().split('\n')).to.have.length(1);
        expect(stderr)
          .to.include(join(disk.path, folder))
          .and.match(/full|ENOSPC/);
      }
    });

    it('keeps the journal when a checkpoint has no space, and continues when space is free', async () => {
      await serve();
      disk.fill(6 * MiB);
      const ids: string[] = [];
      for (let isTaken = true; isTaken;) {
        const reply = await rest.post('/api/councils/run', { input_topic: 'T'.repeat(9_000) });
        isTaken = reply.status === 202;
        if (isTaken) ids.push(rest.read(reply, 202, 'run-start.json').run_id);
        else expectFull(reply);
      }
      disk.clear();
      for (const id of ids) await rest.until(id, isOver);
      expect(await listed()).to.deep.equal([...ids].sort());
    });
  }),
);

describe('An append without disk space', () => {
  const appendOf = (stream: string, chars: number): readonly StoredAppend[] => [
    {
      stream,
      expected: -1,
      rows: [[randomUUID(), 'Grown', JSON.stringify({ text: 'x'.repeat(chars) }), '{}']],
    },
  ];
  const written = (position: number) => [{ kind: 'written', revision: 0, position }];

  it('has no effect, and the next append that fits is written', () => {
    const dir = tempDir();
    const file = join(dir.path, 'log.sqlite');
    const { database } = openLogFile(file);
    const store = new EmbeddedStore(database, 0, () => 0);
    expect(store.append(appendOf('run-1', 10))).to.deep.equal(written(1));
    database.exec(`PRAGMA max_page_count = ${Math.ceil(statSync(file).size / 4096) + 2}`);
    const large = appendOf('run-2', 50_000);
    expect(store.append(large)).to.deep.equal([{ kind: 'full' }]);
    expect([store.head, store.isFull]).to.deep.equal([1, true]);
    expect(store.append(appendOf('run-3', 10))).to.deep.equal(written(2));
    database.exec('PRAGMA max_page_count = 1000000');
    expect(store.append(large)).to.deep.equal(written(3));
    expect(database.prepare('SELECT count(*) AS events FROM events').get()).to.include({ events: 3 });
    database.close();
    dir.remove();
  });
});
