import { expect } from 'chai';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigInvalid } from '../../src/errors.js';
import { startChild } from '../support/child.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { rejectionOf } from '../support/rejection.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

describe('A service with EVENTSTORE_URL whose folder holds an embedded log', () => {
  let bench: CouncilBench;
  let server: FakeEventStore;

  beforeEach(async () => {
    bench = councilBench();
    server = await fakeEventStore(join(bench.path, 'server.sqlite'));
  });
  afterEach(async () => {
    await server.stop();
    await bench.clear();
  });

  const served = async (isOnServer: boolean, act: (service: RunningService) => Promise<void>): Promise<void> => {
    const eventStore = isOnServer ? { url: server.url, prefix: '' } : null;
    const service = await startService({ dataDir: bench.dataDir, eventStore });
    try {
      await act(service);
    } finally {
      await service.stop();
    }
  };
  const told = ({ lines }: RunningService): readonly string[] =>
    lines.map(({ msg }) => msg).filter((msg) => msg.includes('log.sqlite'));

  it('refuses to start while that log holds keys that the server lacks, until they are copied', async () => {
    await served(false, async ({ url }) => {
      const added = await fetch(`${url}/api/keys`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'ann', scopes: ['admin'] }),
      });
      expect(added.status).to.equal(201);
    });
    const refusal = await rejectionOf(served(true, async () => undefined));
    expect(refusal).to.be.instanceOf(ConfigInvalid);
    expect(String(refusal)).to.include('EVENTSTORE_URL').and.include('council migrate').and.include(bench.dataDir);

    const environment = { PATH: process.env['PATH'], PORT: '0', DATA_DIR: bench.dataDir, EVENTSTORE_URL: server.url };
    const { code, stderr, stdout } = await startChild(process.execPath, [MAIN], environment).exit;
    expect([code, stdout]).to.deep.equal([2, '']);
    expect(stderr.trim().split('\n')).to.have.length(1);
    expect(stderr).to.include('council migrate');

    const copied = await bench.council(['migrate'], { env: { EVENTSTORE_URL: server.url } });
    expect(copied.code, copied.stderr).to.equal(0);
    await served(true, async (service) => {
      expect((await fetch(`${service.url}/api/runs`)).status).to.equal(401);
      expect(told(service)).to.have.length(1);
    });
  });

  it('starts if that log holds no keys, and warns once with what it holds', async () => {
    await served(false, async ({ url }) => {
      const rest = restClient(url);
      for (const topic of ['Trees', 'Seas']) await rest.until(await rest.start(topic), isOver);
      await rest.post('/api/councils/', { id: 'mine', name: 'Mine', nodes: [{ id: 'a' }] });
    });
    await served(true, async (service) => {
      expect(told(service)).to.have.length(1);
      expect(told(service)[0])
        .to.include('2 runs, 1 blueprint, 0 documents')
        .and.include(bench.dataDir)
        .and.include('council migrate');
    });
  });

  it('logs no warning if there is no such log', async () => {
    await served(true, async (service) => void expect(told(service)).to.deep.equal([]));
  });
});
