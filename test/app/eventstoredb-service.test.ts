import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { addressOf } from '../support/served-address.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** Runs in progress while the server is killed. */
const RUNS = IS_SOAK ? 20 : 5;

describe('The process on EventStoreDB', () => {
  let dir: TempDir;
  let server: FakeEventStore;
  let children: Child[];

  beforeEach(async () => {
    dir = tempDir();
    children = [];
    server = await fakeEventStore(join(dir.path, 'server.sqlite'));
  });

  afterEach(async () => {
    await Promise.all(children.map((child) => child.kill()));
    await server.stop();
    dir.remove();
  });

  function start(environment: Readonly<Record<string, string>> = {}): Child {
    const child = startChild(process.execPath, [MAIN], {
      PATH: process.env['PATH'],
      PORT: '0',
      DATA_DIR: join(dir.path, 'data'),
      EVENTSTORE_URL: server.url,
      EVENTSTORE_PREFIX: 'service',
      ...environment,
    });
    children.push(child);
    return child;
  }

  const startRun = (url: string): Promise<string> => restClient(url).start();

  const isWaiting = (lines: readonly string[]): boolean =>
    lines.some((line) => line.includes('cannot be reached: waiting'));

  it('waits for a server that is down, continues the runs of killed processes and records on the server', async () => {
    const [stuck, single] = [{ OFFLINE_LATENCY_MS: '60000' }, { MAX_ACTIVE_RUNS: '1' }];
    const first = start(stuck);
    const url = await addressOf(first);
    const runIds = [await startRun(url), await startRun(url)];
    await first.kill();
    // This process has room for one run only, so the other run keeps its first owner.
    const second = start({ ...stuck, ...single });
    const owned = restClient(await addressOf(second));
    const claims = async (): Promise<number> => {
      const records = await Promise.all(runIds.map((runId) => owned.get(`/api/runs/${runId}/events`)));
      return (
        records
          .map(({ text }) => text)
          .join('')
          .split('"recovered"').length - 1
      );
    };
    await untilTrue(async () => (await claims()) === 1);
    await second.kill();
    await server.kill();
    // This process would suspect another instance only after an hour.
    const third = start({ SUSPECT_AFTER_MS: '3600000' });
    await third.waitFor(isWaiting);
    await server.restart();
    const rest = restClient(await addressOf(third));
    await untilTrue(async () => (await rest.get('/api/health/ready')).status === 200);
    // It takes the runs of all processes that were killed before it, not only of the last one.
    for (const runId of runIds) expect(await rest.until(runId, isOver)).to.include({ status: 'completed' });
    const next = await rest.start();
    const finished = await rest.until(next, isOver);
    third.signal('SIGTERM');
    expect(await third.ended).to.equal(0);
    const eventStore = { url: server.url, prefix: 'service' };
    const elsewhere = await startService({ dataDir: join(dir.path, 'elsewhere'), eventStore });
    expect(await restClient(elsewhere.url).until(next, isOver)).to.deep.equal(finished);
    await elsewhere.stop();
  });

  it('stops at once on a signal while it waits', async () => {
    await server.kill();
    const child = start();
    await child.waitFor(isWaiting);
    child.signal('SIGTERM');
    expect(await child.ended).to.equal(0);
  });

  soakIt('is not ready while the server is down, completes every run despite kills, and holds its folder', async () => {
    const first = start({ OFFLINE_LATENCY_MS: '30' });
    const url = await addressOf(first);
    const rest = restClient(url);
    const readiness = async (): Promise<number> => (await rest.get('/api/health/ready')).status;
    expect(await readiness()).to.equal(200);
    const runIds = await Promise.all(Array.from({ length: RUNS }, () => startRun(url)));
    for (let kill = 0; kill < 3; kill += 1) {
      await server.kill();
      await untilTrue(async () => (await readiness()) === 503);
      expect((await rest.get('/api/health')).status).to.equal(200);
      await server.restart();
      await untilTrue(async () => (await readiness()) === 200);
    }
    await untilTrue(() => server.subscriptions() === 1);
    for (const runId of runIds) expect(await rest.until(runId, isOver)).to.include({ status: 'completed' });

    const second = start();
    expect(await second.ended).to.equal(1);
    expect(second.stderrText()).to.match(
      new RegExp(`^Cannot use the data directory ".*": process ${first.pid} .*\\n$`),
    );
  });
});
