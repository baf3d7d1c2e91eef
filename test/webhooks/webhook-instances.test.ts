import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { present } from '../../src/system/element.js';
import { nodeSystem } from '../../src/system/system.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { readDeliveries } from '../../src/webhooks/deliveries.js';
import { changedLog } from '../support/changed-log.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { instantModel } from '../support/instant-model.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import type { Receiver } from '../support/webhook-receiver.js';
import { startReceiver } from '../support/webhook-receiver.js';
import { soakIt } from '../support/soak.js';

const INSTANCES = 3;
const TYPES = ['RunStarted', 'NodeCompleted', 'RunCompleted'];

/** An instance and its data directory. */
interface Seat {
  readonly dataDir: string;
  readonly service: ServiceProcess;
  readonly rest: RestClient;
}

describe('Three instances with webhooks on one EventStoreDB', () => {
  let dir: TempDir;
  let server: FakeEventStore;
  let receiver: Receiver;
  let log: EventLog;
  let seats: Seat[];

  beforeEach(async () => {
    dir = tempDir();
    server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    receiver = await startReceiver();
    log = openEventStoreLog({ url: server.url, prefix: 'hooks', system: nodeSystem() });
    seats = await Promise.all(Array.from({ length: INSTANCES }, (_, index) => open(String(index))));
  });
  afterEach(async () => {
    await Promise.all(seats.map(({ service }) => service.stop()));
    await log.close();
    await receiver.stop();
    await server.stop();
    dir.remove();
  });

  async function open(name: string, suspectAfterMs = 5_000): Promise<Seat> {
    const dataDir = join(dir.path, name);
    const service = await startServiceProcess(dataDir, {
      environment: {
        EVENTSTORE_URL: server.url,
        EVENTSTORE_PREFIX: 'hooks',
        WEBHOOK_ALLOW_PRIVATE: 'on',
        LOG_LEVEL: 'error',
        HEARTBEAT_MS: '500',
        SUSPECT_AFTER_MS: String(suspectAfterMs),
        OFFLINE_LATENCY_MS: '20',
      },
    });
    return { dataDir, service, rest: restClient(service.url) };
  }

  const seat = (index: number): Seat => {
    const found = seats[index % seats.length];
    if (found === undefined) throw new Error('There is no instance left');
    return found;
  };
  const register = async (): Promise<string> => {
    const { rest } = seat(0);
    const reply = await rest.post('/api/webhooks', { url: receiver.url, types: TYPES });
    return rest.read(reply, 201, 'new-webhook.json').id;
  };
  /** The events of runs that are delivered, by run. */
  const wantedOf = async (runIds: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>> => {
    const wanted = new Map<string, readonly number[]>();
    for (const runId of runIds) {
      const { rest } = seat(0);
      await rest.until(runId, ({ status }) => status === 'completed');
      const events = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json').events;
      wanted.set(
        runId,
        events.filter(({ type }) => TYPES.includes(type)).map(({ seq }) => seq),
      );
    }
    return wanted;
  };
  const gotOf = (runId: string): readonly number[] =>
    receiver.received.filter(({ message }) => message.data.run_id === runId).map(({ message }) => message.data.seq);
  /** The instance that delivers. */
  const ownerOf = async (webhookId: string): Promise<Seat | undefined> => {
    const { owner } = await readDeliveries(log, webhookId);
    return seats.find(({ dataDir }) => instanceIn(dataDir) === owner);
  };

  /** Lets an instance deliver to a new webhook, and takes it out of `seats`. Returns the run that it has delivered from. */
  const withoutOwner = async () => {
    const webhookId = await register();
    const first = await seat(0).rest.start();
    await receiver.until(() => gotOf(first).length > 2);
    const owner = present(await ownerOf(webhookId), 'instance that delivers');
    seats = seats.filter((each) => each !== owner);
    return { webhookId, first, owner };
  };

  it('are one at a time: each event is delivered once, whichever instance runs the council', async () => {
    const webhookId = await register();
    const runIds = await Promise.all([0, 1, 2, 0, 1, 2].map((index) => seat(index).rest.start()));
    for (const [runId, wanted] of await wantedOf(runIds)) {
      await receiver.until(() => gotOf(runId).length >= wanted.length);
      expect(gotOf(runId)).to.deep.equal(wanted);
    }
    for (const { rest } of seats) {
      const list = rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json');
      expect(list.map(({ id }) => id)).to.deep.equal([webhookId]);
      // Of those that succeeded, the last 20 are listed.
      await untilTrue(async () => {
        const page = await rest.get(`/api/webhooks/${webhookId}/deliveries`);
        const shown = rest.read(page, 200, 'webhook-delivery-list.json');
        return shown.length === 20 && shown.every(({ status }) => status === 'delivered');
      });
    }
  });

  soakIt(
    'go on without the one that delivers when it is killed, with no event lost and each run in order',
    async () => {
      const { webhookId, first, owner } = await withoutOwner();
      owner.service.child.kill('SIGKILL');
      const runIds = [first, ...(await Promise.all([0, 1].map((index) => seat(index).rest.start())))];
      for (const [runId, wanted] of await wantedOf(runIds)) {
        await receiver.until(() => new Set(gotOf(runId)).size === wanted.length);
        // An attempt that was not recorded may be repeated.
        expect([...new Set(gotOf(runId))]).to.deep.equal(wanted);
        expect(gotOf(runId)).to.deep.equal(gotOf(runId).toSorted((one, other) => one - other));
      }
      await untilTrue(async () => (await ownerOf(webhookId)) !== undefined);
      await owner.service.stop();
    },
  );

  it('send nothing out of order when the one that delivers is frozen, is replaced, and wakes', async () => {
    const { webhookId, first, owner } = await withoutOwner();
    owner.service.child.kill('SIGSTOP');
    const runIds = [first, await seat(0).rest.start()];
    for (const [runId, wanted] of await wantedOf(runIds))
      await receiver.until(() => new Set(gotOf(runId)).size === wanted.length);
    owner.service.child.kill('SIGCONT');
    seats.push(owner);
    runIds.push(await owner.rest.start());
    for (const [runId, wanted] of await wantedOf(runIds)) {
      await receiver.until(() => new Set(gotOf(runId)).size === wanted.length);
      expect(gotOf(runId)).to.deep.equal(gotOf(runId).toSorted((one, other) => one - other));
    }
    expect(await ownerOf(webhookId)).not.to.equal(owner);
  });

  soakIt('take a webhook at once when the one that delivers stops, long before they suspect it', async () => {
    await Promise.all(seats.map(({ service }) => service.stop()));
    seats = await Promise.all(['a', 'b'].map((name) => open(name, 600_000)));
    const { webhookId, first, owner } = await withoutOwner();
    await owner.service.stop();
    const runIds = [first, await seat(0).rest.start()];
    for (const [runId, wanted] of await wantedOf(runIds)) {
      await receiver.until(() => gotOf(runId).length >= wanted.length);
      expect(gotOf(runId)).to.deep.equal(wanted);
    }
    expect(await ownerOf(webhookId)).to.equal(seat(0));
  });

  it('attempt a delivery again when a human asks any of them', async () => {
    const webhookId = await register();
    const runId = await seat(0).rest.start();
    const [wanted = []] = [...(await wantedOf([runId])).values()];
    await receiver.until(() => gotOf(runId).length === wanted.length);
    const before = receiver.received.length;
    const { headers } = receiver.received[0] ?? {};
    const path = `/api/webhooks/${webhookId}/deliveries/${String(headers?.['webhook-id'])}/retry`;
    for (const { rest } of seats) {
      // The record of the delivery may come later than its answer.
      await untilTrue(async () => (await rest.post(path)).status === 202);
    }
    await receiver.until((all) => all.length >= before + 1);
    expect(receiver.received.at(-1)?.headers['webhook-id']).to.equal(headers?.['webhook-id']);
  });
});

describe('An instance whose heartbeats failed for a while', () => {
  soakIt('delivers its webhooks again, although it would be the turn of another instance', async () => {
    const dir = tempDir();
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const receiver = await startReceiver();
    let isTaken = true;
    const open = (): Promise<RunningService> =>
      startService({
        model: instantModel(),
        webhookAllowPrivate: true,
        eventStore: { url: server.url, prefix: 'hooks' },
        cluster: { heartbeatMs: 100, suspectAfterMs: 3_000 },
        decorate: (record) =>
          changedLog(record, {
            append: (stream, events, expected) =>
              isTaken || !stream.startsWith('instance-')
                ? record.append(stream, events, expected)
                : Promise.reject(new LogUnavailable()),
          }),
      });
    const first = await open();
    const rest = restClient(first.url);
    const paths = Array.from({ length: 8 }, (_, index) => `/${index}`);
    for (const path of paths) await rest.post('/api/webhooks', { url: `${receiver.url}${path}` });
    const delivered = async (): Promise<void> => {
      const runId = await rest.start();
      for (const path of paths)
        await receiver.until((all) => all.some((each) => each.path === path && each.message.data.run_id === runId));
    };
    await delivered();
    const services = [first, await open()];
    isTaken = false;
    await untilTrue(() => services.every(({ faults }) => faults.some((fault) => 'instanceId' in fault)));
    isTaken = true;
    for (const { url } of services)
      await untilTrue(async () => (await fetch(`${url}/api/health/ready`)).status === 200);
    await delivered();
    for (const service of services) await service.stop();
    await receiver.stop();
    await server.stop();
    dir.remove();
  });
});

/** The id of the instance that uses a data directory. */
function instanceIn(dataDir: string): unknown {
  return fieldOf(JSON.parse(readFileSync(join(dataDir, 'instance.json'), 'utf8')), 'instanceId');
}
