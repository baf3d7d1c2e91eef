import { expect } from 'chai';
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LogUnreadable } from '../../src/eventlog/port.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import { changeLog } from '../support/damaged-log.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { rejectionOf } from '../support/rejection.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { sample, soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** The content of each file under a folder, by its relative path. */
function contentsOf(folder: string): ReadonlyMap<string, Buffer> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return new Map(files.map((name) => [name, readFileSync(join(folder, name))]));
}

describe('A service with EVENTSTORE_URL whose folder holds an embedded log', () => {
  let bench: CouncilBench;
  let server: FakeEventStore;
  let log: string;

  beforeEach(async () => {
    bench = councilBench();
    log = join(bench.dataDir, 'log.sqlite');
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
  const warnings = ({ lines }: RunningService): readonly string[] =>
    lines.map(({ msg }) => msg).filter((msg) => msg.includes('log.sqlite'));

  const addKey = (): Promise<void> =>
    served(false, async ({ url }) => {
      const added = await fetch(`${url}/api/keys`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'ann', scopes: ['admin'] }),
      });
      expect(added.status).to.equal(201);
    });
  const twoRuns = (): Promise<void> =>
    served(false, async ({ url }) => {
      const rest = restClient(url);
      for (const topic of ['Trees', 'Seas']) await rest.until(await rest.start(topic), isOver);
      await rest.post('/api/councils/', { id: 'mine', name: 'Mine', nodes: [{ id: 'a' }] });
    });
  /** What the process of the service writes to standard error when it refuses to start on the server. */
  const complaint = async (url = server.url): Promise<string> => {
    const env = { PORT: '0', DATA_DIR: bench.dataDir, EVENTSTORE_URL: url };
    const child = bench.program(process.execPath, [MAIN], { env, input: '' });
    const isStarted = await child
      .waitFor((lines) => lines.length > 0)
      .then(
        () => true,
        () => false,
      );
    expect(isStarted, 'the service has started').to.equal(false);
    const { code, stderr, stdout } = await child.exit;
    expect([code, stdout], stderr).to.deep.equal([2, '']);
    expect(stderr.trim().split('\n')).to.have.length(1);
    return stderr.trim();
  };

  it('refuses to start while that log holds keys that the server lacks, until they are copied', async () => {
    await addKey();
    const url = server.url.replace('://', '://ann:hunter2@');
    const shown = url.replace('ann:hunter2', '(hidden)').replace(/=[^&]*/g, '=…');
    expect(await complaint(url)).to.equal(
      `Cannot use EVENTSTORE_URL="${shown}": use "council migrate" to copy ${log} to this server first, ` +
        'because that log has 1 key that the server lacks, or move that file away',
    );
    const copied = await bench.council(['migrate'], { env: { EVENTSTORE_URL: server.url } });
    expect(copied.code, copied.stderr).to.equal(0);
    await served(true, async (service) => {
      expect((await fetch(`${service.url}/api/runs`)).status).to.equal(401);
      expect(warnings(service)).to.have.length(1);
    });
  });

  soakIt('changes nothing in the folder when it refuses to start', async () => {
    await addKey();
    const before = contentsOf(bench.dataDir);
    expect(before).to.include.keys('log.sqlite', 'views/views.sqlite');
    await complaint();
    const after = contentsOf(bench.dataDir);
    expect([...after.keys()]).to.deep.equal([...before.keys()]);
    for (const [name, bytes] of before) expect(after.get(name)?.equals(bytes), name).to.equal(true);
    await served(false, async ({ url }) => void expect((await fetch(`${url}/api/runs`)).status).to.equal(401));
  });

  const damages = [
    ['whose keys are corrupt', () => changeLog(bench.dataDir, "UPDATE events SET data = '{}'")],
    ['that is empty', () => truncateSync(log)],
    ['whose pages are damaged', () => writeFileSync(log, readFileSync(log).fill(0xff, 4_096))],
    ['that is no database', () => writeFileSync(log, 'x'.repeat(8_192))],
  ] as const;
  for (const [what, damage] of sample(damages, 1)) {
    it(`refuses to start beside a log ${what}, and names the file and what to do`, async () => {
      await addKey();
      damage();
      expect(await complaint())
        .to.include(log)
        .and.match(/repair .* or move it away, because the service cannot check the keys in it/);
    });
  }

  soakIt('shows all runs of that log again when EVENTSTORE_URL is removed after the warning', async () => {
    await twoRuns();
    for (let round = 0; round < 2; round += 1) {
      await served(true, async (service) => void expect(warnings(service)).to.have.length(1));
      await served(false, async ({ url }) => {
        const rest = restClient(url);
        expect(rest.read(await rest.get('/api/runs'), 200, 'history-list.json')).to.have.length(2);
      });
    }
  });

  it('still refuses that log if it lost its last events while EVENTSTORE_URL was set', async () => {
    await twoRuns();
    const older = readFileSync(log);
    await twoRuns();
    await served(true, async () => undefined);
    writeFileSync(log, older);
    const refusal = await rejectionOf(served(false, async () => undefined));
    expect(refusal).to.be.instanceOf(LogUnreadable);
    expect(String(refusal)).to.include('acknowledged after that are missing');
  });

  it('starts if that log holds no keys, and warns once of its runs', async () => {
    await twoRuns();
    await served(true, async (service) => {
      expect(warnings(service)).to.have.length(1);
      expect(warnings(service)[0])
        .to.include('2 runs, 1 blueprint, 0 documents')
        .and.include(bench.dataDir)
        .and.include('council migrate');
    });
  });

  it('logs no warning if there is no such log', async () => {
    await served(true, async (service) => void expect(warnings(service)).to.deep.equal([]));
  });
});
