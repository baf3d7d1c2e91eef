import { join } from 'node:path';
import { expect } from 'chai';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { Leaf } from '../../src/ledger/events.js';
import { LEDGER_STREAM, leafOf } from '../../src/ledger/events.js';
import { Ledger } from '../../src/ledger/ledger.js';
import { runStream } from '../../src/run/events.js';
import { nodeSystem } from '../../src/system/system.js';
import type { RunningService } from '../support/running-service.js';
import { changedLog } from '../support/changed-log.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { instantModel } from '../support/instant-model.js';
import { restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

async function leavesOf({ log }: { readonly log: Pick<EventLog, 'readStream'> }): Promise<readonly Leaf[]> {
  const leaves: Leaf[] = [];
  for await (const event of log.readStream(LEDGER_STREAM)) leaves.push(leafOf(event));
  return leaves;
}

describe('The leaves of the ledger', () => {
  it('name the end of each run once, also after a restart', async () => {
    const dir = tempDir();
    let service = await startService({ dataDir: dir.path });
    const ids = await Promise.all([1, 2, 3].map(() => restClient(service.url).start()));
    await untilTrue(async () => (await leavesOf(service.context)).length === 3);
    const leaves = await leavesOf(service.context);
    expect(leaves.map((leaf) => leaf.kind === 'run' && leaf.runId)).to.have.members(ids);
    for (const leaf of leaves) {
      if (leaf.kind !== 'run') throw new Error('no leaf of a run');
      const page = (await (await fetch(`${service.url}/api/runs/${leaf.runId}/events?limit=1000`)).json()) as {
        events: readonly { hash: string; at: string }[];
      };
      const last = page.events.at(-1);
      expect(leaf).to.deep.equal({
        kind: 'run',
        runId: leaf.runId,
        events: page.events.length,
        headHash: last?.hash,
        status: 'completed',
        endedAt: last?.at,
      });
      expect(await service.context.history.leafOf(leaf.runId)).to.equal(leaves.indexOf(leaf));
    }
    const late = await restClient(service.url).start();
    await service.stop();
    service = await startService({ dataDir: dir.path });
    await untilTrue(async () => (await leavesOf(service.context)).length === 4);
    expect((await leavesOf(service.context))[3]).to.include({ runId: late });
    await service.stop();
    dir.remove();
  });

  it('are complete after a service that ran for less than a second', async () => {
    const dir = tempDir();
    const records: string[] = [];
    // The stop adds them, and closes the log.
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        append(stream, events, expected) {
          if (stream === LEDGER_STREAM) records.push(...events.map(({ data }) => data));
          return log.append(stream, events, expected);
        },
      });
    const service = await startService({ dataDir: dir.path, decorate });
    const rest = restClient(service.url);
    const id = await rest.start();
    await rest.until(id, ({ status }) => status === 'completed');
    await service.stop();
    expect(records.join()).to.include(id);
    dir.remove();
  });

  it('are added for runs that end after 1,000 damaged ones, which get none', async () => {
    const dir = tempDir();
    const log = await openEmbeddedLog({ file: join(dir.path, 'log') });
    const system = nodeSystem();
    const damaged = Array.from({ length: 1_000 }, () => system.uuid());
    const whole = system.uuid();
    const metadata = { occurredAt: system.now(), hash: 'a'.repeat(64) };
    await log.append(runStream(whole), [{ id: system.uuid(), type: 'RunCompleted', data: '{}', metadata }], 'none');
    const leaves = async (): Promise<readonly Leaf[]> => await leavesOf({ log });
    const ledger: Ledger = new Ledger({
      log,
      system,
      members: { isInTurn: () => true },
      projector: {
        async waitFor() {
          for await (const event of log.readStream(LEDGER_STREAM, { from: ledger.tree.size }))
            ledger.onEventRecorded(event);
        },
      },
      endedWithoutLeaf: async (max) => [...damaged, ...((await leaves()).length === 0 ? [whole] : [])].slice(0, max),
      erasedAs: async () => null,
      onFault: (error) => expect.fail(String(error)),
    });
    await ledger.fold();
    await ledger.finish();
    expect((await leaves()).map((leaf) => leaf.kind === 'run' && leaf.runId)).to.deep.equal([whole]);
    await ledger.stop();
    await log.close();
    dir.remove();
  });

  it('of more ended runs than an append holds are added after an upgrade, once and in order, by two instances', async () => {
    const dir = tempDir();
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const open = (name: string, decorate = (log: EventLog): EventLog => log) =>
      startService({
        dataDir: join(dir.path, name),
        eventStore: { url: server.url, prefix: '' },
        model: instantModel(),
        decorate,
      });
    // Before the upgrade no leaf is added.
    const old = await open('old', (log) =>
      changedLog(log, {
        append: (stream, events, expected) =>
          stream === LEDGER_STREAM ? Promise.reject(new LogUnavailable()) : log.append(stream, events, expected),
      }),
    );
    const rest = restClient(old.url);
    for (let n = 0; n < 21; n += 1) await Promise.all(Array.from({ length: 50 }, () => rest.start()));
    await untilTrue(async () => (await endsIn(old)).length === 21 * 50);
    await old.stop();
    const services = await Promise.all(['a', 'b'].map((name) => open(name)));
    // These end while the earlier ones are added.
    for (const { url } of services) await Promise.all(Array.from({ length: 10 }, () => restClient(url).start()));
    const [one, other] = services.map(({ context, url }) => ({ context, rest: restClient(url) }));
    if (one === undefined || other === undefined) throw new Error('no services');
    const state = async ({ rest: client }: typeof one) =>
      client.read(await client.get('/api/ledger'), 200, 'ledger.json');
    await untilTrue(async () => (await state(one)).size === 1_070 && (await state(other)).size === 1_070);
    expect((await leavesOf(one.context)).map((leaf) => leaf.kind === 'run' && leaf.runId)).to.deep.equal(
      await endsIn(one),
    );
    expect((await state(one)).root).to.equal((await state(other)).root);
    for (const { faults } of services) expect(faults).to.deep.equal([]);
    await Promise.all(services.map((service) => service.stop()));
    await server.stop();
    dir.remove();
  });
});

/** The runs that have ended, in the order of their ends. */
async function endsIn({ context }: Pick<RunningService, 'context'>): Promise<readonly string[]> {
  const ends: string[] = [];
  for await (const { type, stream } of context.log.readAll(null, { categories: ['run'] }))
    if (type === 'RunCompleted' || type === 'RunFailed') ends.push(stream.slice('run-'.length));
  return ends;
}
