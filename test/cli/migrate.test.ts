import { expect } from 'chai';
import { join } from 'node:path';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('council migrate', () => {
  let bench: CouncilBench;
  let server: FakeEventStore;
  let services: RunningService[];

  beforeEach(async () => {
    bench = councilBench();
    services = [];
    server = await fakeEventStore(join(bench.path, 'server.sqlite'));
  });
  afterEach(async () => {
    for (const service of services) await service.stop();
    await server.stop();
    await bench.clear();
  });
  const serve = async (settings: Pick<ServiceOverrides, 'dataDir' | 'eventStore'>): Promise<RunningService> => {
    const service = await startService(settings);
    services.push(service);
    return service;
  };
  const migrate = (env: Readonly<Record<string, string>>) => bench.council(['migrate'], { env });

  it('copies every record of a service to EventStoreDB, and may be run again', async () => {
    const embedded = await serve({ dataDir: bench.dataDir, eventStore: null });
    const before = restClient(embedded.url);
    const runIds = await Promise.all(Array.from({ length: 5 }, () => before.start()));
    for (const runId of runIds) await before.until(runId, isOver);
    await before.post('/api/councils/', { id: 'mine', name: 'Mine', nodes: [{ id: 'a' }] });
    const paths = ['/api/runs/', '/api/councils/', ...runIds.map((runId) => `/api/runs/${runId}/events?limit=1000`)];
    const earlier = await Promise.all(paths.map(async (path) => (await before.get(path)).text));
    await embedded.stop();

    const prefix = 'moved';
    const environment = { EVENTSTORE_URL: server.url, EVENTSTORE_PREFIX: prefix };
    const first = await bench.command(['migrate'], { env: { DATA_DIR: bench.dataDir, ...environment } });
    expect(first.code, first.stderr).to.equal(0);
    // 5 runs, a council, the ledger and its checkpoints.
    expect(first.stderr).to.match(/^Copied and verified: \d+ events in 8 streams$/m);
    const again = await migrate(environment);
    expect(again.code).to.equal(0);
    expect(again.stderr).to.include('already there');

    const moved = await serve({ dataDir: join(bench.path, 'new'), eventStore: { url: server.url, prefix } });
    const after = restClient(moved.url);
    for (const [index, path] of paths.entries()) expect((await after.get(path)).text).to.equal(earlier[index]);
    await after.until(await after.start(), isOver);
    await moved.stop();
  });

  it('exits 2 without a server or without a log', async () => {
    const none = await migrate({ EVENTSTORE_URL: '' });
    expect(none).to.include({ code: 2 });
    expect(none.stderr).to.include('EVENTSTORE_URL');
    const empty = await migrate({ EVENTSTORE_URL: server.url });
    expect(empty).to.include({ code: 2 });
    expect(empty.stderr).to.include('DATA_DIR');
  });

  it('exits 2 and lets go of the folder when the connection string lacks the user that TLS needs', async () => {
    await (await serve({ dataDir: bench.dataDir, eventStore: null })).stop();
    const refused = await migrate({ EVENTSTORE_URL: 'esdb://localhost:2113' });
    expect(refused).to.include({ code: 2 });
    expect(refused.stderr).to.include('user:password@');
    expect(await migrate({ EVENTSTORE_URL: server.url })).to.include({ code: 0 });
  });

  it('refuses while the service runs', async () => {
    await serve({ dataDir: bench.dataDir, eventStore: null });
    const refused = await migrate({ EVENTSTORE_URL: server.url });
    expect(refused).to.include({ code: 1 });
    expect(refused.stderr).to.include(`process ${process.pid}`);
  });
});
