import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { changeViews } from '../support/damaged-log.js';
import type { HeldLog } from '../support/held-log.js';
import { heldLog } from '../support/held-log.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const RUNS = 30;

describe('Stored views that are corrupt', () => {
  let service: RunningService;
  let rest: RestClient;
  let views: string;
  let log: HeldLog;
  /** Resolves when the log may report that all stored events were read. */
  let mayCatchUp: Promise<void>;
  let isHeld: boolean;

  const decorate = (inner: EventLog): EventLog =>
    changedLog(inner, {
      async *subscribe(after, following) {
        for await (const followed of inner.subscribe(after, following)) {
          isHeld = followed.kind === 'caughtUp';
          if (isHeld) await mayCatchUp;
          yield followed;
        }
      },
    });

  beforeEach(async () => {
    mayCatchUp = Promise.resolve();
    log = heldLog();
    service = await startService({ decorate: (inner) => log.decorate(decorate(inner)) });
    rest = restClient(service.url);
    views = join(service.dataDir, 'views', 'views.sqlite');
  });
  afterEach(() => service.stop());

  /**
   * Overwrites every page of the file except the first. A write by another connection makes the service read the pages
   * again.
   */
  const damage = (): void => {
    changeViews(service.dataDir, "INSERT INTO meta VALUES ('touched', ''); PRAGMA wal_checkpoint(TRUNCATE)");
    const bytes = readFileSync(views);
    bytes.fill(0x5a, 4096);
    writeFileSync(views, bytes);
  };
  const ready = async (): Promise<boolean> => (await rest.get('/api/health/ready')).status === 200;
  const listed = async (): Promise<readonly string[]> =>
    rest
      .read(await rest.get('/api/runs/?limit=200'), 200, 'history-list.json')
      .map(({ id }) => id)
      .sort();

  it('are folded again while the service runs: requests by id are answered, lists wait, no answer is 500', async () => {
    const ids = await Promise.all(Array.from({ length: RUNS }, () => rest.start()));
    for (const id of ids) await rest.until(id, isOver);
    await rest.post('/api/councils/', { id: 'mine', name: 'Mine', nodes: [{ id: 'a' }] });
    expect(await listed()).to.deep.equal([...ids].sort());
    damage();
    const polls = await Promise.all(ids.map((id) => rest.poll(id)));
    expect(polls.map(({ status }) => status)).to.deep.equal(ids.map(() => 'completed'));
    expect(await listed()).to.deep.equal([...ids].sort());
    expect((await rest.get('/api/councils/')).text).to.include('"mine"');
    await untilTrue(ready);
    const further = await rest.start();
    await rest.until(further, isOver);
    expect(await listed()).to.deep.equal([...ids, further].sort());
    expect(service.faults.filter((fault) => JSON.stringify(fault).includes('views.sqlite'))).to.have.length(1);
  });

  it('are ready again only after everything in the log is folded', async () => {
    const id = await rest.start();
    await rest.until(id, isOver);
    let release = (): void => undefined;
    mayCatchUp = new Promise((resolve) => (release = resolve));
    isHeld = false;
    try {
      damage();
      await rest.poll(id);
      await untilTrue(() => isHeld);
      expect(await ready()).to.equal(false);
    } finally {
      release();
    }
    await untilTrue(ready);
  });

  it('are folded again before a list is answered; requests by id are answered meanwhile', async () => {
    const ids = [await rest.start(), await rest.start()];
    for (const id of ids) await rest.until(id, isOver);
    expect(await listed()).to.deep.equal([...ids].sort());
    log.hold();
    damage();
    const listing = listed();
    await untilTrue(() => service.faults.length > 0);
    for (const id of ids) expect(await rest.poll(id)).to.include({ status: 'completed' });
    log.release();
    expect(await listing).to.deep.equal([...ids].sort());
  });

  it('are rebuilt at the start of the service, whichever table was lost while it was stopped', async () => {
    const dir = tempDir();
    const first = await startService({ dataDir: dir.path });
    const ids = [await restClient(first.url).start(), await restClient(first.url).start()];
    for (const id of ids) await restClient(first.url).until(id, isOver);
    await first.stop();
    const file = join(dir.path, 'views', 'views.sqlite');
    const whole = readFileSync(file);
    const damages = [() => changeViews(dir.path, 'DROP TABLE damaged'), () => changeViews(dir.path, 'DROP TABLE runs')];
    for (const spoil of damages) {
      writeFileSync(file, whole);
      spoil();
      const again = await startService({ dataDir: dir.path });
      const list = await restClient(again.url).get('/api/runs/');
      expect(restClient(again.url).read(list, 200, 'history-list.json')).to.have.length(2);
      await again.stop();
    }
    dir.remove();
  });
});
