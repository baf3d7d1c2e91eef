import { expect } from 'chai';
import { join } from 'node:path';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { checkLink, exportedOf, GENESIS_HASH } from '../../src/eventsourcing/hash-chain.js';
import {
  KeyEnded,
  KeyNotFirst,
  KeyRefused,
  KeyTaken,
  KeyUnknown,
  KeysContended,
  KeysCorrupt,
} from '../../src/keys/errors.js';
import { KEYS_STREAM } from '../../src/keys/events.js';
import type { KeyRequest } from '../../src/keys/key-request.js';
import { keyEnded, KeyStore } from '../../src/keys/store.js';
import { RevisionConflict } from '../../src/eventlog/errors.js';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const NOBODY = { actor: null };
const ANN = { actor: 'ann' };
const asking = (name: string, change: Partial<KeyRequest> = {}): KeyRequest => ({
  name,
  scopes: ['admin'],
  expiresAt: null,
  ...change,
});

describe('The keys', () => {
  let dir: TempDir;
  let log: EventLog;
  let faults: unknown[];
  let stores: KeyStore[];

  beforeEach(async () => {
    dir = tempDir();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
    faults = [];
    stores = [];
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.stop()));
    await log.close();
    dir.remove();
  });

  async function open(on: EventLog = log, system: System = nodeSystem()): Promise<KeyStore> {
    const store = new KeyStore({ log: on, system, instanceId: 'one', onFault: (error) => faults.push(error) });
    stores.push(store);
    await store.load();
    return store;
  }

  async function recorded(): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for await (const event of log.readStream(KEYS_STREAM)) events.push(event);
    return events;
  }
  const typesRecorded = async (): Promise<readonly string[]> => (await recorded()).map(({ type }) => type);

  it('leave the service open until the first is added, and closed from then on, even if it is revoked', async () => {
    const keys = await open();
    expect(keys.isOpen).to.equal(true);
    await keys.add(asking('ann'), NOBODY);
    expect(keys.isOpen).to.equal(false);
    await keys.revoke('ann', 'ann');
    expect(keys.isOpen).to.equal(false);
    expect((await open()).isOpen).to.equal(false);
  });

  it('are found by their text, and only its hash is recorded', async () => {
    const keys = await open();
    const { key, text } = await keys.add(asking('ann', { scopes: ['admin', 'read'] }), NOBODY);
    expect(text).to.match(/^council_[A-Za-z0-9_-]{43}$/);
    expect(key.hash).to.equal(nodeSystem().sha256(text));
    expect(await keys.find(text)).to.equal(key);
    expect([...key.scopes]).to.deep.equal(['admin', 'read']);
    const [added] = await recorded();
    expect(JSON.stringify(added)).not.to.include(text.slice('council_'.length));
    expect(await keys.find(`${text.slice(0, -1)}${text.endsWith('A') ? 'E' : 'A'}`)).to.equal(null);
    expect(await keys.find(text.slice('council_'.length))).to.equal(null);
  });

  it('have a hash chain, and record who added and revoked them', async () => {
    const keys = await open();
    await keys.add(asking('ann'), NOBODY);
    await keys.add(asking('ben', { scopes: ['run'] }), ANN);
    await keys.revoke('ben', 'ann');
    const events = (await recorded()).map(exportedOf);
    let previous = GENESIS_HASH;
    for (const event of events) {
      expect(checkLink(previous, event, nodeSystem().sha256)).to.equal(true);
      previous = event.hash;
    }
    expect(keys.named('ben')).to.deep.include({ addedBy: 'ann', revoked: { at: events[2]?.at, by: 'ann' } });
  });

  it('keep their names for ever', async () => {
    const keys = await open();
    await keys.add(asking('ann'), NOBODY);
    await keys.revoke('ann', null);
    expect(await rejectionOf(keys.add(asking('ann'), NOBODY))).to.be.instanceOf(KeyTaken);
    expect(await rejectionOf((await open()).add(asking('ann'), NOBODY))).to.be.instanceOf(KeyTaken);
  });

  it('are revoked once; an unknown one is not found', async () => {
    const keys = await open();
    await keys.add(asking('ann'), NOBODY);
    await keys.revoke('ann', 'ann');
    expect((await keys.revoke('ann', 'ben')).revoked?.by).to.equal('ann');
    expect(await typesRecorded()).to.deep.equal(['KeyAdded', 'KeyRevoked']);
    expect(await rejectionOf(keys.revoke('ben', null))).to.be.instanceOf(KeyUnknown);
  });

  it('start with one that has the scope admin', async () => {
    const keys = await open();
    expect(await rejectionOf(keys.add(asking('ann', { scopes: ['read'] }), NOBODY))).to.be.instanceOf(KeyRefused);
    await keys.add(asking('ann'), { ...NOBODY, isFirst: true });
    await keys.add(asking('ben', { scopes: ['read'] }), NOBODY);
    const second = keys.add(asking('eve'), { ...NOBODY, isFirst: true });
    expect(await rejectionOf(second)).to.be.instanceOf(KeyNotFirst);
  });

  for (const [what, request] of [
    ['no name', asking('')],
    ['a name that a path would cut', asking('a/b')],
    ['a name like a scope in a list of approvers', asking('scope:run')],
    ['a name of 65 characters', asking('a'.repeat(65))],
    ['the name of their record', asking('events')],
    ['no scope', asking('ann', { scopes: [] })],
    ['an expiry in the past', asking('ann', { expiresAt: '2020-01-01T00:00:00.000Z' })],
  ] as const) {
    it(`refuse ${what}`, async () => {
      const keys = await open();
      expect(await rejectionOf(keys.add(request, NOBODY))).to.be.instanceOf(KeyRefused);
      expect(await recorded()).to.be.empty;
    });
  }

  it('expire at their time of expiry', async () => {
    const system = manualSystem();
    const keys = await open(log, system);
    const { text } = await keys.add(asking('ann', { expiresAt: '2026-01-01T01:00:00.000Z' }), NOBODY);
    const ended = async (): Promise<string | null> => {
      const key = await keys.find(text);
      return key === null ? 'unknown' : keyEnded(key, system.now());
    };
    system.setNow('2026-01-01T00:59:59.999Z');
    expect(await ended()).to.equal(null);
    system.setNow('2026-01-01T01:00:00.000Z');
    expect(await ended()).to.equal('expired');
    await keys.revoke('ann', null);
    expect(await ended()).to.equal('revoked');
  });

  describe('at several instances', () => {
    it('get one first key if several instances add it at once', async () => {
      const instances = await Promise.all(Array.from({ length: 4 }, () => open()));
      const adding = instances.map((keys) => keys.add(asking('ann'), { ...NOBODY, isFirst: true }));
      const outcomes = await Promise.allSettled(adding);
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
      expect(await typesRecorded()).to.deep.equal(['KeyAdded']);
    });

    it('cannot change keys after they were revoked at another instance, or have expired', async () => {
      const system = manualSystem();
      const [here, there] = [await open(log, system), await open(log, system)];
      await there.add(asking('ann'), NOBODY);
      await here.add(asking('brief', { expiresAt: '2026-01-01T01:00:00.000Z' }), ANN);
      await there.revoke('ann', null);
      expect(await rejectionOf(here.add(asking('eve'), ANN))).to.deep.include({
        data: { name: 'ann', end: 'revoked' },
      });
      expect(await rejectionOf(here.revoke('brief', 'ann'))).to.be.instanceOf(KeyEnded);
      system.setNow('2026-01-01T01:00:00.000Z');
      expect(await rejectionOf(here.add(asking('eve'), { actor: 'brief' }))).to.be.instanceOf(KeyEnded);
      expect(await typesRecorded()).to.deep.equal(['KeyAdded', 'KeyAdded', 'KeyRevoked']);
    });

    it('are valid at another instance at once', async () => {
      const [here, there] = [await open(), await open()];
      const { text } = await there.add(asking('ann'), NOBODY);
      expect((await here.find(text))?.name).to.equal('ann');
      const { text: second } = await there.add(asking('ben'), ANN);
      expect((await here.find(second))?.name).to.equal('ben');
    });

    it('are looked up by one read of the log for 100 callers with unknown keys', async () => {
      let reads = 0;
      const counted = changedLog(log, {
        readStream(stream, range) {
          reads += 1;
          return log.readStream(stream, range);
        },
      });
      const keys = await open(counted, manualSystem());
      reads = 0;
      const unknown = Array.from({ length: 100 }, (_, index) => `council_${String(index).padStart(43, '0')}`);
      expect(await Promise.all(unknown.map((text) => keys.find(text)))).to.deep.equal(unknown.map(() => null));
      expect(reads).to.equal(1);
      expect(await keys.find('no key at all')).to.equal(null);
      expect(reads).to.equal(1);
    });

    it('follow the events of the subscription: repeated ones are skipped, missing ones are read', async () => {
      const [here, there] = [await open(), await open()];
      await there.add(asking('ann'), NOBODY);
      await there.add(asking('ben'), ANN);
      await there.revoke('ann', 'ben');
      let changes = 0;
      here.onChange(() => (changes += 1));
      const [first, second, third] = await recorded();
      if (first === undefined || second === undefined || third === undefined) return expect.fail();
      here.onEventRecorded(first);
      here.onEventRecorded(first);
      expect(here.list().map(({ name }) => name)).to.deep.equal(['ann']);
      here.onEventRecorded(third);
      await untilTrue(() => here.named('ann')?.revoked?.by === 'ben');
      here.onEventRecorded(second);
      expect(here.list().map(({ name }) => name)).to.deep.equal(['ann', 'ben']);
      expect(changes).to.equal(2);
      expect(faults).to.be.empty;
    });

    it('record their use once a day over all instances', async () => {
      const system = manualSystem();
      const [one, other] = [await open(log, system), await open(log, manualSystem(2))];
      await one.add(asking('ann'), NOBODY);
      const unused = one.named('ann') ?? expect.fail();
      await other.load();
      for (const keys of [one, other, one, other]) keys.recordUse(unused, system.now());
      await untilTrue(() => [one, other].every((keys) => keys.named('ann')?.lastUsed === '2026-01-01'));
      await Promise.all([one.stop(), other.stop()]);
      const uses = (await recorded()).filter(({ type }) => type === 'KeyUsed');
      expect(uses.map(({ data }): unknown => JSON.parse(data))).to.deep.equal([{ name: 'ann', day: '2026-01-01' }]);

      const later = await open(log, system);
      const used = later.named('ann') ?? expect.fail();
      expect(used.lastUsed).to.equal('2026-01-01');
      later.recordUse(used, system.now());
      system.setNow('2026-01-02T00:00:00.000Z');
      later.recordUse(used, system.now());
      await untilTrue(() => later.named('ann')?.lastUsed === '2026-01-02');
      expect((await recorded()).filter(({ type }) => type === 'KeyUsed')).to.have.length(2);
    });
  });

  it('fail a change that conflicts with other instances at every attempt', async () => {
    const append = (stream: string): Promise<never> =>
      Promise.reject(new RevisionConflict({ stream, expected: 'none', actual: 1 }));
    const keys = await open(changedLog(log, { append }));
    expect(await rejectionOf(keys.add(asking('ann'), NOBODY))).to.be.instanceOf(KeysContended);
  });

  it('authenticate no caller when their record is corrupt', async () => {
    const keys = await open();
    const { text } = await keys.add(asking('ann'), NOBODY);
    await keys.revoke('ann', null);
    const forged = changedLog(log, {
      async *readStream(stream, range) {
        for await (const event of log.readStream(stream, range)) {
          yield event.type === 'KeyRevoked' ? { ...event, type: 'KeyUsed' } : event;
        }
      },
    });
    const store = new KeyStore({ log: forged, system: nodeSystem(), instanceId: 'two', onFault: () => undefined });
    expect(await rejectionOf(store.load())).to.be.instanceOf(KeysCorrupt);
    expect(() => store.isOpen).to.throw(KeysCorrupt);
    expect(await rejectionOf(store.find(text))).to.be.instanceOf(KeysCorrupt);
    expect(await rejectionOf(store.add(asking('eve'), NOBODY))).to.be.instanceOf(KeysCorrupt);
  });
});
