import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { blueprintStream } from '../../src/blueprint/events.js';
import { BlueprintContended, BlueprintCorrupt, BlueprintMoved, BlueprintTooLarge } from '../../src/blueprint/errors.js';
import { BlueprintStore } from '../../src/blueprint/store.js';
import { MAX_BLUEPRINT_BYTES } from '../../src/blueprint/record.js';
import { AppendOutcomeUnknown, LogUnavailable, RevisionConflict } from '../../src/eventlog/errors.js';
import { ServiceStopping } from '../../src/errors.js';
import { checkLink, exportedOf, GENESIS_HASH } from '../../src/eventsourcing/hash-chain.js';
import { appendFacts, headAt } from '../../src/eventsourcing/aggregate.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import { lastEvent } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const PLAIN = { id: 'plain', name: 'Plain', nodes: [{ id: 'a' }] };

describe('The blueprint store', () => {
  let dir: TempDir;
  let log: EventLog;

  beforeEach(async () => {
    dir = tempDir();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
  });
  afterEach(async () => {
    await log.close();
    dir.remove();
  });

  const storeOn = (on: EventLog): BlueprintStore =>
    new BlueprintStore({
      log: on,
      system: nodeSystem(),
      instanceId: 'one',
      hasKeys: () => false,
      models: { providers: ['offline'], builtIn: ['offline'], unpriced: () => null },
    });
  /** A store that does something before each append. */
  const storeBefore = (act: (stream: string) => unknown): BlueprintStore =>
    storeOn(
      changedLog(log, {
        async append(stream, events, expected) {
          await act(stream);
          return await log.append(stream, events, expected);
        },
      }),
    );
  /** A store during whose first change another instance changes something. */
  const storeDuring = (change: () => Promise<unknown>): BlueprintStore => {
    let left = 1;
    return storeBefore(() => (left-- > 0 ? change() : null));
  };
  /** A store whose appends to the plain blueprint wait for `free`. */
  const heldStore = () => {
    let free = (): void => undefined;
    const held = new Promise<void>((resolve) => (free = resolve));
    return { free, blueprints: storeBefore((stream) => (stream === blueprintStream('plain') ? held : null)) };
  };
  const eventsOf = async (id: string): Promise<readonly RecordedEvent[]> => {
    const events: RecordedEvent[] = [];
    for await (const event of log.readStream(blueprintStream(id), {})) events.push(event);
    return events;
  };

  /** Records any data as the next save of the plain blueprint, with a correct hash. */
  const save = async (data: object): Promise<void> => {
    const [stream, subject] = [blueprintStream('plain'), 'plain'];
    const last = await lastEvent(log, stream);
    const facts = [{ type: 'BlueprintUpdated', data }];
    const deps = { log, system: nodeSystem(), instanceId: 'one' };
    await appendFacts(deps, { stream, subject, head: last && headAt(last), facts }, new AbortController().signal);
  };

  for (const [what, isWritten, error] of [
    ['written without an answer', true, new AppendOutcomeUnknown({ stream: 's' })],
    ['lost without an answer', false, new AppendOutcomeUnknown({ stream: 's' })],
    ['never sent', false, new LogUnavailable()],
  ] as const) {
    it(`makes a change once if its append was ${what}`, async () => {
      let appends = 0;
      const blueprints = storeOn(
        changedLog(log, {
          async append(stream, events, expected) {
            appends += 1;
            if (appends % 2 === 0) return await log.append(stream, events, expected);
            if (isWritten) await log.append(stream, events, expected);
            throw error;
          },
        }),
      );
      await blueprints.create(PLAIN);
      await blueprints.update('plain', { name: 'New' });
      expect(await blueprints.find('plain')).to.include({ name: 'New', version: 2 });
      expect((await eventsOf('plain')).map(({ type }) => type)).to.deep.equal(['BlueprintCreated', 'BlueprintUpdated']);
      expect(appends).to.equal(4);
    });
  }

  it('keeps a change that another instance makes between its read and its append', async () => {
    const other = storeOn(log);
    await other.create(PLAIN);
    const blueprints = storeDuring(() => other.update('plain', { edges: [{ source: 'a', target: 'b' }] }));
    expect(await blueprints.update('plain', { name: 'Both' })).to.deep.include({ version: 3, name: 'Both' });
    expect((await blueprints.find('plain'))?.edges).to.have.length(1);
  });

  it('fails a change after too many conflicts', async () => {
    const blueprints = storeOn(
      changedLog(log, {
        append: (stream) => Promise.reject(new RevisionConflict({ stream, expected: 'none', actual: 1 })),
      }),
    );
    expect(await rejectionOf(blueprints.create(PLAIN))).to.be.instanceOf(BlueprintContended);
  });

  it('queues 100 changes of a blueprint, refuses the next, and does not delay other blueprints', async () => {
    const { blueprints, free } = heldStore();
    const created = blueprints.create(PLAIN);
    const waiting = Array.from({ length: 100 }, (_, at) => blueprints.update('plain', { name: `Name ${at}` }));
    expect(await rejectionOf(blueprints.update('plain', { name: 'One too many' }))).to.be.instanceOf(
      BlueprintContended,
    );
    await blueprints.create({ ...PLAIN, id: 'other' });
    free();
    await created;
    await Promise.all(waiting);
    expect(await blueprints.update('plain', { name: 'Later' })).to.include({ version: 102 });
  });

  it('refuses a change if another instance has changed the expected version meanwhile', async () => {
    const other = storeOn(log);
    await other.create(PLAIN);
    const blueprints = storeDuring(() => other.update('plain', { name: 'Meanwhile' }));
    const isFirst = { isExpected: ({ version }: { readonly version: number }): boolean => version === 1 };
    const refused = await rejectionOf(blueprints.update('plain', { name: 'Late' }, isFirst));
    expect(refused).to.be.instanceOf(BlueprintMoved).with.deep.property('data', { blueprintId: 'plain', version: 2 });
    expect(await rejectionOf(blueprints.remove('plain', isFirst))).to.be.instanceOf(BlueprintMoved);
    expect(await blueprints.find('plain')).to.include({ name: 'Meanwhile', version: 2 });
  });

  it('stops after the change in flight and refuses queued changes', async () => {
    const { blueprints, free } = heldStore();
    const created = blueprints.create(PLAIN);
    const waiting = Array.from({ length: 50 }, () => rejectionOf(blueprints.update('plain', { name: 'Late' })));
    await new Promise((resolve) => setImmediate(resolve));
    const stopped = blueprints.stop();
    free();
    await stopped;
    await created;
    for (const error of await Promise.all(waiting)) expect(error).to.be.instanceOf(ServiceStopping);
    expect((await eventsOf('plain')).map(({ type }) => type)).to.deep.equal(['BlueprintCreated']);
  });

  it('saves a request of 256 KiB with all its defaults, and refuses one byte more', async () => {
    const sized = (bytes: number) => {
      const nodes = Array.from({ length: 200 }, (_, at) => ({ id: `n${at}` }));
      const edges = Array.from({ length: 1_000 }, (_, at) => ({ source: `n${at % 200}`, target: 'n0' }));
      const rest = bytes - JSON.stringify({ name: '', nodes, edges }).length;
      return { name: 'x'.repeat(rest), nodes, edges };
    };
    const blueprints = storeOn(log);
    const kept = await blueprints.create({ id: 'full', ...sized(MAX_BLUEPRINT_BYTES) });
    expect(JSON.stringify(kept).length).to.be.greaterThan(MAX_BLUEPRINT_BYTES);
    expect(await blueprints.update('full', { edges: [] })).to.include({ version: 2 });
    const refused = await rejectionOf(blueprints.create({ id: 'over', ...sized(MAX_BLUEPRINT_BYTES + 1) }));
    expect(refused).to.be.instanceOf(BlueprintTooLarge);
    expect(refused).to.have.deep.property('data', { blueprintId: 'over', bytes: 262_145, limit: 262_144 });
  });

  it('counts members with their default ids and labels, so that a saved blueprint can be saved again', async () => {
    const panels = (count: number) => ({
      name: 'x',
      nodes: Array.from({ length: count }, (_, at) => ({
        id: `n${at}`,
        members: Array.from({ length: 8 }, (__, index) => ({ id: `${index}${'x'.repeat(127)}` })),
      })),
    });
    const blueprints = storeOn(log);
    const { nodes } = await blueprints.create({ id: 'full', ...panels(110) });
    expect(await blueprints.update('full', { nodes })).to.include({ version: 2 });
    expect(JSON.stringify(panels(150)).length).to.be.lessThan(MAX_BLUEPRINT_BYTES);
    expect(await rejectionOf(blueprints.create({ id: 'over', ...panels(150) }))).to.be.instanceOf(BlueprintTooLarge);
  });

  it('reports an invalid record as corrupt, and can delete it', async () => {
    const blueprints = storeOn(log);
    const good = await blueprints.create(PLAIN);
    const records: readonly unknown[] = [
      ...[undefined, null, 1, [], {}, { ...good, id: 'other' }, { ...good, updatedAt: null }],
      ...[
        { ...good, nodes: {} },
        { ...good, nodes: [{ id: 'a' }] },
        { ...good, nodes: good.nodes.map((node) => ({ ...node, approvals: 'pending' })) },
        { ...good, nodes: good.nodes.map((node) => ({ ...node, members: 'all' })) },
        { ...good, edges: [null] },
      ],
    ];
    for (const blueprint of records) {
      await save(blueprint === undefined ? {} : { blueprint });
      expect(await rejectionOf(blueprints.find('plain'))).to.be.instanceOf(BlueprintCorrupt);
    }
    expect(await rejectionOf(blueprints.update('plain', { name: 'New' }))).to.be.instanceOf(BlueprintCorrupt);
    await blueprints.remove('plain');
    expect(await blueprints.find('plain')).to.equal(null);
    await blueprints.create(PLAIN);
  });

  it('chains its events by hash, also across a deletion', async () => {
    const blueprints = storeOn(log);
    await blueprints.create(PLAIN);
    await blueprints.remove('plain');
    await blueprints.create(PLAIN);
    const events = await eventsOf('plain');
    expect(events.map(({ type }) => type)).to.deep.equal(['BlueprintCreated', 'BlueprintDeleted', 'BlueprintCreated']);
    let previous = GENESIS_HASH;
    for (const event of events.map(exportedOf)) {
      expect(checkLink(previous, event, nodeSystem().sha256)).to.equal(true);
      previous = event.hash;
    }
  });
});
