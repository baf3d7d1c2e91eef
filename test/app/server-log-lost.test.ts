import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { LogNameless, StreamLost } from '../../src/eventlog/errors.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { commandHere } from '../support/council-command.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { addFirstKey, restWith } from '../support/keys.js';
import { rejectionOf } from '../support/rejection.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { addressOf } from '../support/served-address.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

describe('The log on a server', () => {
  let dir: TempDir;
  let server: FakeEventStore;
  let file: string;
  let service: RunningService | null;
  let child: Child | null;

  beforeEach(async () => {
    dir = tempDir();
    file = join(dir.path, 'server.sqlite');
    server = await fakeEventStore(file);
    [service, child] = [null, null];
  });
  afterEach(async () => {
    await child?.kill();
    await service?.stop();
    await server.stop();
    dir.remove();
  });

  const start = async (prefix = 'own', folder = 'data'): Promise<RunningService> => {
    service = await startService({ dataDir: join(dir.path, folder), eventStore: { url: server.url, prefix } });
    return service;
  };
  /** Starts the service, uses it and stops it. */
  const served = async <T>(use: (service: RunningService) => Promise<T>): Promise<T> => {
    const result = await use(await start());
    await service?.stop();
    service = null;
    return result;
  };
  const completed = async ({ url }: RunningService): Promise<string> => {
    const rest = restClient(url);
    const runId = await rest.start();
    await rest.until(runId, isOver);
    return runId;
  };
  /** Puts other contents on the server, at the same address: a copy, or nothing. */
  const replaceServer = async (copy: string | null): Promise<void> => {
    const { port } = server;
    await server.stop();
    for (const suffix of ['', '-wal', '-head']) rmSync(file + suffix, { force: true });
    if (copy !== null) cpSync(copy, file);
    server = await fakeEventStore(file, port);
  };
  const backedUp = async (): Promise<string> => {
    const { port } = server;
    await server.stop();
    const copy = join(dir.path, 'backup.sqlite');
    cpSync(file, copy);
    server = await fakeEventStore(file, port);
    return copy;
  };
  const refusalOf = async (starting: Promise<unknown>): Promise<string> => {
    const error = await rejectionOf(starting);
    expect(error).to.be.instanceOf(LogUnreadable);
    const { message } = error as LogUnreadable;
    expect(message).to.include('esdb://').and.include('council check --accept-loss').and.not.include('\n');
    return message;
  };
  const accept = async (): Promise<string> => {
    const env = { DATA_DIR: join(dir.path, 'data'), EVENTSTORE_URL: server.url, EVENTSTORE_PREFIX: 'own' };
    const { code, stdout, stderr } = await commandHere(['check', '--accept-loss'], { env });
    expect(code, stderr).to.equal(0);
    return stdout;
  };

  it('does not open when it comes back empty after it had keys, until the loss is accepted', async () => {
    await served(({ url }) => addFirstKey(url));
    await replaceServer(null);
    expect(await refusalOf(start())).to.include('it is not the log that this folder held before');
    expect(await accept()).to.include('council keys add');
    const { url } = await start();
    expect((await restClient(url).get('/api/runs')).status).to.equal(200);
  });

  it('does not open under another prefix', async () => {
    await served(completed);
    expect(await refusalOf(start('onw'))).to.include('EVENTSTORE_PREFIX');
    await start();
  });

  it('does not open after it went back to a backup, also when others have appended since', async () => {
    await served(completed);
    const copy = await backedUp();
    await served(completed);
    await replaceServer(copy);
    expect(await refusalOf(start())).to.match(/it lacks event \d+ of "(run-|ledger)/);
    // Another instance that has seen less goes on with it.
    const other = await start('own', 'other');
    for (let runs = 0; runs < 3; runs += 1) await completed(other);
    await other.stop();
    expect(await refusalOf(start())).to.match(/it lacks event \d+ of "(run-|ledger)/);
    await accept();
    const { url } = await start();
    const listed = await restClient(url).get('/api/runs');
    expect(restClient(url).read(listed, 200, 'history-list.json')).to.have.length(4);
  });

  it('is seen up to its newest event soon after, also when nothing follows but heartbeats', async () => {
    const cluster = { heartbeatMs: 50, suspectAfterMs: 5_000 };
    const dataDir = join(dir.path, 'data');
    service = await startService({ dataDir, eventStore: { url: server.url, prefix: 'own' }, cluster });
    await addFirstKey(service.url);
    await untilTrue(() => readFileSync(join(dataDir, 'log-seen'), 'utf8').includes('"stream":"keys-all"'));
  });

  it('does not open in a folder whose embedded log had keys, if EVENTSTORE_URL is lost', async () => {
    await served(({ url }) => addFirstKey(url));
    const dataDir = join(dir.path, 'data');
    expect(await rejectionOf(startService({ dataDir, eventStore: null }))).to.be.instanceOf(LogUnreadable);
    rmSync(join(dataDir, 'views'), { recursive: true });
    const error = await rejectionOf(startService({ dataDir, eventStore: null }));
    expect(error).to.be.instanceOf(LogUnreadable);
    expect((error as Error).message)
      .to.include('API keys are lost')
      .and.not.include('AUTH');
  });

  it('opens in a folder whose record of it is blank, as after a full disk or a power cut at the first start', async () => {
    mkdirSync(join(dir.path, 'data'));
    for (const blank of ['', '\0'.repeat(512)]) {
      writeFileSync(join(dir.path, 'data', 'log-seen'), blank);
      await served(completed);
    }
  });

  it('is not named again when it holds events and its name is missing', async () => {
    await server.append('ownrun-1', { type: 'RunRequested', data: {} });
    expect(await rejectionOf(start())).to.be.instanceOf(LogNameless);
  });

  it('is not opened when the streams of its keys or its name were truncated or deleted', async () => {
    const key = await served(({ url }) => addFirstKey(url));
    for (const stream of ['ownkeys-all', 'ownlog-identity']) {
      server.behave({ isDeleted: (asked) => asked === stream });
      for (const folder of ['data', 'new']) {
        const deleted = await rejectionOf(start('own', folder));
        expect(deleted).to.be.instanceOf(StreamLost);
        expect((deleted as Error).message).to.include(`"${stream}"`);
      }
      server.behave({});
    }
    const { url } = await start();
    expect((await restWith(url, key).get('/api/runs')).status).to.equal(200);
    await service?.stop();
    await server.append('$$ownkeys-all', { type: '$metadata', data: { $tb: 1 } });
    expect(await rejectionOf(start('own', 'new'))).to.be.instanceOf(StreamLost);
    // No key can be read any more: the oldest ones have expired.
    await server.append('$$emptykeys-all', { type: '$metadata', data: { $maxAge: 1 } });
    expect(await rejectionOf(start('empty', 'new'))).to.be.instanceOf(StreamLost);
  });

  soakIt('ends the process with one line when it is replaced while a service runs on it', async () => {
    const copy = await backedUp();
    for (const contents of [null, copy]) {
      child = startChild(process.execPath, [MAIN], {
        PATH: process.env['PATH'],
        PORT: '0',
        DATA_DIR: join(dir.path, nodeSystem().uuid()),
        EVENTSTORE_URL: server.url,
        EVENTSTORE_PREFIX: 'own',
        HEARTBEAT_MS: '50',
      });
      const rest = restClient(await addressOf(child));
      await rest.until(await rest.start(), isOver);
      await replaceServer(contents);
      const { code, stdout } = await child.exit;
      expect(code).to.equal(1);
      expect(stdout.split('\n').filter((line) => line.includes('was replaced by another one'))).to.have.length(1);
    }
  });

  it('differs from the clock of the service by a time that is in the metrics, and once in the log', async () => {
    const skewOf = async (): Promise<number | null> => {
      const text = await (await fetch(`${service?.url}/metrics`)).text();
      const value = /^council_clock_skew_seconds (\S+)$/m.exec(text)?.[1];
      return value === undefined ? null : Number(value);
    };
    for (const aheadMs of [120_000, -120_000, 0]) {
      const system = { ...nodeSystem(), now: () => new Date(Date.now() + aheadMs).toISOString() };
      service = await startService({
        dataDir: join(dir.path, 'data'),
        eventStore: { url: server.url, prefix: 'own' },
        system,
        cluster: { heartbeatMs: 50, suspectAfterMs: 5_000 },
      });
      await untilTrue(async () => Math.abs(((await skewOf()) ?? Infinity) - aheadMs / 1_000) < 1);
      const { lines, stop } = service;
      await stop();
      const skews = lines
        .filter(({ msg }) => msg.startsWith('clock:'))
        .map((line) => Math.round(Number(Reflect.get(line, 'skewMs')) / 1_000));
      expect(skews).to.deep.equal(aheadMs === 0 ? [] : [aheadMs / 1_000]);
    }
    service = null;
  });

  it('is followed again when a subscription stays open and delivers nothing', async () => {
    const cluster = { heartbeatMs: 50, suspectAfterMs: 500 };
    const eventStore = { url: server.url, prefix: 'own' };
    service = await startService({ dataDir: join(dir.path, 'data'), eventStore, cluster });
    let subscriptions = 0;
    server.behave({
      isMute: () => subscriptions === 0,
      read(kind) {
        if (kind === 'subscription') subscriptions += 1;
        return 'answered';
      },
    });
    const rest = restClient(service.url);
    const runId = await rest.start();
    await untilTrue(() => subscriptions > 0);
    await rest.until(runId, isOver);
    await untilTrue(async () => (await rest.get('/api/runs')).text.includes(runId));
  });
});
