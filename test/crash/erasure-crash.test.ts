import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { LogFull } from '../../src/eventlog/errors.js';
import { lastEvent } from '../../src/eventlog/port.js';
import { leafEvent } from '../../src/ledger/events.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { startChild } from '../support/child.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { filesWith } from '../support/files-with.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { sample } from '../support/soak.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const CHILD = fileURLToPath(new URL('../support/erase-child.js', import.meta.url));
const STEPS = ['leaf durable', 'removed', 'removal unsent', 'leaf unsent'] as const;

describe('A crash during an erasure', () => {
  let dir: TempDir;
  let server: FakeEventStore | null;
  let services: RunningService[];

  beforeEach(() => {
    dir = tempDir();
    [server, services] = [null, []];
  });
  afterEach(async () => {
    for (const service of services) await service.stop();
    await server?.stop();
    dir.remove();
  });

  const serve = async (name: string): Promise<RunningService> => {
    const eventStore = server === null ? null : { url: server.url, prefix: '' };
    const service = await startService({ dataDir: join(dir.path, name), eventStore });
    services.push(service);
    return service;
  };
  /** The run that a process was erasing when it died at a step. */
  const crashed = async (step: string): Promise<string> => {
    const child = startChild(process.execPath, [CHILD, join(dir.path, 'data'), step, server?.url ?? '']);
    expect((await child.exit).signal, step).to.equal('SIGKILL');
    return child.lines[0] ?? '';
  };
  const leavesOf = async ({ context }: RunningService, runId: string): Promise<number> => {
    let leaves = 0;
    for await (const { data } of context.log.readStream('ledger'))
      if (data.includes('"kind":"erasure"') && data.includes(runId)) leaves += 1;
    return leaves;
  };

  for (const log of ['the embedded log', 'EventStoreDB'])
    for (const step of sample(STEPS, log === 'EventStoreDB' ? 1 : 2))
      it(`is completed by the next start, at "${step}" on ${log}`, async () => {
        if (log === 'EventStoreDB') server = await fakeEventStore(join(dir.path, 'server.sqlite'));
        const runId = await crashed(step);
        const service = await serve('data');
        const client = restClient(service.url);
        const isErased = step !== 'leaf unsent';
        expect((await client.get(`/api/runs/${runId}`)).status).to.equal(isErased ? 410 : 200);
        expect((await client.get(`/api/runs/${runId}/events`)).status).to.equal(isErased ? 410 : 200);
        expect(await leavesOf(service, runId)).to.equal(isErased ? 1 : 0);
        if (isErased) expect(filesWith(join(dir.path, 'data'), 'zyxcanaryword')).to.deep.equal([]);
        expect((await client.send('DELETE', `/api/runs/${runId}`)).status).to.equal(204);
        expect(await leavesOf(service, runId)).to.equal(1);
        expect(filesWith(join(dir.path, 'data'), 'zyxcanaryword')).to.deep.equal([]);
        expect(service.faults).to.deep.equal([]);
      });

  it('is completed by the next start after a removal that failed, however many runs end in between', async () => {
    const removed = { isRefused: true };
    const failing = await startService({
      dataDir: join(dir.path, 'data'),
      eventStore: null,
      decorate: (log) =>
        changedLog(log, {
          remove: (streams) => (removed.isRefused ? Promise.reject(new LogFull()) : log.remove(streams)),
        }),
    });
    services.push(failing);
    const client = restClient(failing.url);
    const runId = await client.start('About zyxcanaryword');
    await client.until(runId, ({ status }) => status === 'completed');
    expect((await client.send('DELETE', `/api/runs/${runId}`)).status).to.equal(503);
    expect((await client.get(`/api/runs/${runId}`)).status).to.equal(410);
    const leaves = Array.from({ length: 1_001 }, () => {
      const ended = { events: 1, headHash: 'a'.repeat(64), status: 'failed', endedAt: nodeSystem().now() } as const;
      return leafEvent({ kind: 'run', runId: nodeSystem().uuid(), ...ended }, nodeSystem());
    });
    for (const events of [leaves.slice(0, 500), leaves.slice(500)])
      await failing.context.log.append(
        'ledger',
        events,
        (await lastEvent(failing.context.log, 'ledger'))?.revision ?? 'none',
      );
    await failing.stop();
    expect(filesWith(join(dir.path, 'data'), 'zyxcanaryword')).not.to.deep.equal([]);
    await serve('data');
    expect(filesWith(join(dir.path, 'data'), 'zyxcanaryword')).to.deep.equal([]);
  });

  it('is completed by another instance', async () => {
    server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const other = await serve('other');
    const runId = await crashed('leaf durable');
    const client = restClient(other.url);
    const isRemoved = async (): Promise<boolean> => {
      const { log } = other.context;
      try {
        for await (const _ of log.readStream(`run-${runId}`, { max: 1 })) return false;
        return false;
      } catch {
        return true;
      }
    };
    await untilTrue(isRemoved);
    expect((await client.get(`/api/runs/${runId}`)).status).to.equal(410);
    await untilTrue(async () => filesWith(join(dir.path, 'other'), 'zyxcanaryword').length === 0);
  });
});
