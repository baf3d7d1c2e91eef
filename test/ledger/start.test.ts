import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { EventLog } from '../../src/eventlog/port.js';
import { CHECKPOINTS_STREAM, LEDGER_STREAM, leafEvent } from '../../src/ledger/events.js';
import { checkpointText, newKeyPem, noteSigner } from '../../src/ledger/note.js';
import { MerkleTree, leafHash } from '../../src/ledger/tree.js';
import { wait } from '../../src/system/async/deadline.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { LEDGER_AT_ONCE } from '../support/ledger.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const ORIGIN = 'example.com/council';

describe('The ledger at the start and while the service runs', () => {
  let dir: TempDir;

  beforeEach(() => (dir = tempDir()));
  afterEach(() => dir.remove());

  it('starts while another instance adds a leaf and signs a checkpoint of it', async () => {
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const keyFile = join(dir.path, 'key.pem');
    writeFileSync(keyFile, newKeyPem());
    const ledger = { ...LEDGER_AT_ONCE, origin: ORIGIN, keyFile };
    let isSigned = false;
    /** An instance that stops acts before a read of this one, to which the events then come late. */
    const signedBetween = (log: EventLog): EventLog =>
      changedLog(log, {
        readStream: (stream, range) => read(log, stream, range),
        subscribe: (after, options) => late(log.subscribe(after, options)),
      });
    async function* late(followed: ReturnType<EventLog['subscribe']>) {
      for await (const each of followed) {
        if (each.kind === 'event') await wait(nodeSystem(), 500, new AbortController().signal);
        yield each;
      }
    }
    async function* read(log: EventLog, ...[stream, range]: Parameters<EventLog['readStream']>) {
      if (stream === CHECKPOINTS_STREAM && !isSigned) await sign(log);
      yield* log.readStream(stream, range);
    }
    async function sign(log: EventLog): Promise<void> {
      isSigned = true;
      const leaf = leafEvent(LEAF, nodeSystem());
      await log.append(LEDGER_STREAM, [leaf], 'none');
      const tree = new MerkleTree(async () => []);
      tree.add(leafHash(Buffer.from(leaf.data)));
      const text = checkpointText({ origin: ORIGIN, size: 1, root: tree.root() });
      const note = noteSigner(ORIGIN, readFileSync(keyFile, 'utf8')).sign(text);
      const data = JSON.stringify({ note });
      const metadata = { occurredAt: nodeSystem().now(), schemaVersion: '1', hash: 'a'.repeat(64) };
      await log.append(
        CHECKPOINTS_STREAM,
        [{ id: nodeSystem().uuid(), type: 'CheckpointSigned', data, metadata }],
        'none',
      );
    }
    const eventStore = { url: server.url, prefix: '' };
    const service = await startService({ dataDir: join(dir.path, 'a'), eventStore, ledger, decorate: signedBetween });
    expect(isSigned).to.equal(true);
    const rest = restClient(service.url);
    await untilTrue(async () => rest.read(await rest.get('/api/ledger'), 200, 'ledger.json').checkpoint?.size === 1);
    await service.stop();
    await server.stop();
  });

  it('makes a key after a kill that left an empty file', async () => {
    const file = join(dir.path, 'ledger-key.pem');
    writeFileSync(file, '', { mode: 0o600 });
    const service = await startService({ dataDir: dir.path, eventStore: null });
    await service.stop();
    expect(noteSigner(ORIGIN, readFileSync(file, 'utf8')).key.key).to.have.lengthOf(32);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
  });

  it('signs nothing on EventStoreDB without a key, says so once, and refuses no read', async () => {
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const service = await startService({ dataDir: join(dir.path, 'a'), eventStore: { url: server.url, prefix: '' } });
    const rest = restClient(service.url);
    const runId = await rest.start();
    await rest.until(runId, isOver);
    const state = async () => rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
    await untilTrue(async () => (await state()).size === 1);
    expect(await state()).to.include({ vkey: null, checkpoint: null });
    rest.problem(await rest.get('/ledger/checkpoint'), 404);
    const unproven = await rest.get(`/api/runs/${runId}/proof`);
    expect(rest.problem(unproven, 409).detail).to.match(/: this service signs none: .*LEDGER_KEY_FILE/);
    const { ledger } = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(ledger).to.deep.equal({ index: 0, covered: false });
    expect(service.lines.filter(({ msg }) => msg.includes('LEDGER_KEY_FILE'))).to.have.lengthOf(1);
    expect(existsSync(join(dir.path, 'a', 'ledger-key.pem'))).to.equal(false);
    expect(service.faults).to.deep.equal([]);
    await service.stop();
    await server.stop();
  });

  it('signs no more when another checkpoint contradicts it while it runs, says so, and runs go on', async () => {
    const ledger = { ...LEDGER_AT_ONCE, origin: ORIGIN };
    const service = await startService({ dataDir: dir.path, eventStore: null, ledger });
    const rest = restClient(service.url);
    await rest.until(await rest.start(), isOver);
    const state = async () => rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
    await untilTrue(async () => (await state()).checkpoint?.size === 1);
    const text = checkpointText({ origin: ORIGIN, size: 1, root: leafHash(Buffer.from('forged')) });
    const note = noteSigner(ORIGIN, readFileSync(join(dir.path, 'ledger-key.pem'), 'utf8')).sign(text);
    const metadata = { occurredAt: nodeSystem().now(), schemaVersion: '1', hash: 'a'.repeat(64) };
    const forged = { id: nodeSystem().uuid(), type: 'CheckpointSigned', data: JSON.stringify({ note }), metadata };
    await service.context.log.append(CHECKPOINTS_STREAM, [forged], 0);
    const runId = await rest.start();
    await rest.until(runId, isOver);
    await untilTrue(async () => /^council_ledger_contradicted 1$/m.test((await rest.get('/metrics')).text));
    const ready = await rest.get('/api/health/ready');
    expect([ready.status, ready.text]).to.satisfy(
      ([status, body]: [number, string]) => status === 200 && /ledger/.test(body),
    );
    await rest.until(await rest.start(), isOver);
    expect(service.faults).to.have.lengthOf(1);
    expect((await state()).checkpoint?.size).to.equal(1);
    await service.stop();
  });
});

const LEAF = {
  kind: 'run',
  runId: '11111111-1111-4111-8111-111111111111',
  events: 3,
  headHash: 'a'.repeat(64),
  status: 'completed',
  endedAt: '2026-01-01T00:00:00.000Z',
} as const;
