import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { DatabaseSync } from '@photostructure/sqlite';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { commandHere } from '../support/council-command.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { LOG_VERSION } from '../../src/eventlog/log-version.js';

const SCHEMAS = new URL('../../../schemas/', import.meta.url);

/** The types that each version has added, and the digest of the schemas of all recorded events at the newest version. */
const ADDED: Readonly<Record<number, readonly string[]>> = {
  2: [
    ...['BlueprintCreated', 'BlueprintDeleted', 'BlueprintUpdated', 'CallReserved', 'ChunksAdded'],
    ...['ChunksEmbedded', 'DeliveriesChanged', 'DeliveriesClaimed', 'DeliveriesReleased', 'DeliveryRetried'],
    ...['DocumentDeleted', 'DocumentIngested', 'DocumentReceived', 'GateDecided', 'KeyAdded'],
    ...['KeyRevoked', 'KeyUsed', 'NodeCompleted', 'NodeFailed', 'NodeStarted'],
    ...['PanelClosed', 'PauseEscalated', 'QuorumReached', 'RunClaimed', 'RunCompleted'],
    ...['RunFailed', 'RunPaused', 'RunReleased', 'RunRequested', 'RunResumed'],
    ...['RunStarted', 'SecretCreated', 'SessionEnded', 'SessionOpened', 'TicketsChanged'],
    ...['ToolCalled', 'VoteCast', 'WebhookDeleted', 'WebhookDisabled', 'WebhookListed'],
    ...['WebhookRegistered', 'WebhookSecretRotated', 'WebhookUnlisted'],
  ],
  // Materials, documents of runs and final outputs: fields alone.
  3: [],
  // And the texts of web hits, a field alone.
  4: ['CheckpointCosigned', 'CheckpointSigned', 'LeafAdded'],
  5: ['ChildEnded', 'ChildStarted'],
};
const DIGEST = 'c8da0da89c2da2d000adc4a4f1b7cef9a681442f3c1e7b0224e7569495ffee57';

/** Words of a schema that no validator of recorded events reads. */
const ANNOTATIONS = new Set(['$schema', '$id', 'title', 'description', 'examples', 'default', 'format']);

describe('A log that needs a newer version of the service', () => {
  let dir: TempDir;

  beforeEach(() => (dir = tempDir()));
  afterEach(() => dir.remove());

  const REFUSAL = /it needs a newer version of this service \(its events have version 99, this one reads up to \d+\)/;

  it('is refused by a start and by every command, and is not changed', async () => {
    const file = join(dir.path, 'log.sqlite');
    const env = { DATA_DIR: dir.path };
    await (await openEmbeddedLog({ file })).close();
    changeVersion(file, 99);
    const refused = await rejectionOf(openEmbeddedLog({ file }));
    expect(refused).to.be.instanceOf(LogUnreadable);
    expect((refused as LogUnreadable).message)
      .to.match(REFUSAL)
      .and.not.include('\n');
    const run = '00000000-0000-4000-8000-000000000000';
    for (const words of [
      ['check'],
      ['salvage', '--to', join(dir.path, 'salvaged')],
      ['keys', 'list'],
      ['keys', 'add', 'ann', '--scopes', 'admin'],
      ['backup', '--to', `${dir.path}-backup`],
      ['events', run],
      ['state', run],
      ['verify', run],
      ['export', run],
    ]) {
      const { code, stderr } = await commandHere(words, { env });
      expect(stderr, words.join(' ')).to.match(REFUSAL);
      expect([words, code]).to.deep.equal([words, words[0] === 'verify' ? 2 : 5]);
    }
    const migrated = await commandHere(['migrate'], {
      env: { ...env, EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false' },
    });
    expect(migrated.stderr).to.match(REFUSAL);
    expect(migrated.code).to.equal(1);
    changeVersion(file, LOG_VERSION);
    await (await openEmbeddedLog({ file })).close();
  });

  it('is refused on EventStoreDB before it is read or written', async () => {
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const url = `${server.url}&keepAliveTimeout=60000`;
    const open = (): EventLog => openEventStoreLog({ url, system: nodeSystem(), deadlineMs: 60_000 });
    const log = open();
    const identity = await log.identity();
    await log.close();
    const client = EventStoreDBClient.connectionString`${url}`;
    const versions = async (): Promise<readonly unknown[]> => {
      const found: unknown[] = [];
      for await (const { event } of client.readStream('log-identity')) found.push(fieldOf(event?.data, 'version'));
      return found;
    };
    expect(await versions()).to.deep.equal([LOG_VERSION]);
    const again = open();
    expect(await again.identity()).to.equal(identity);
    await again.close();
    expect(await versions(), 'an open without need writes nothing').to.deep.equal([LOG_VERSION]);
    await server.append('log-identity', { type: 'LogVersionRaised', data: { version: 99 } });
    const newer = open();
    expect(String(await rejectionOf(newer.identity()))).to.match(REFUSAL);
    await newer.close();
    for (const words of [
      ['keys', 'list'],
      ['keys', 'revoke', 'ann'],
    ]) {
      const { code, stderr } = await commandHere(words, { env: { DATA_DIR: dir.path, EVENTSTORE_URL: server.url } });
      expect(stderr, words.join(' ')).to.match(REFUSAL);
      expect(code).to.equal(5);
    }
    await client.dispose();
    await server.stop();
  });

  it('is each log that this version has opened, for older versions', async () => {
    const file = join(dir.path, 'log.sqlite');
    await (await openEmbeddedLog({ file })).close();
    changeVersion(file, 1);
    await (await openEmbeddedLog({ file })).close();
    expect(versionOf(file)).to.equal(LOG_VERSION);
  });
});

function changeVersion(file: string, version: number): void {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA user_version = ${version}`);
  database.close();
}

function versionOf(file: string): unknown {
  const database = new DatabaseSync(file);
  const row: unknown = database.prepare('PRAGMA user_version').get();
  database.close();
  return fieldOf(row, 'user_version');
}

describe('The version of events that a log needs', () => {
  const files = readdirSync(SCHEMAS).filter((name) => name.endsWith('-events.json'));

  it('is raised with each new type of event', () => {
    const types = files.flatMap((file) => Object.keys((documentIn(file) as { properties: object }).properties));
    expect(
      Object.values(ADDED).flat().sort(),
      'An older service calls events of an unknown type corrupt: raise LOG_VERSION, then list the type under it',
    ).to.deep.equal(types.sort());
    expect(Math.max(...Object.keys(ADDED).map(Number))).to.equal(LOG_VERSION);
  });

  it('is raised with each change of a recorded schema that an older service calls corrupt', () => {
    const documents = [...withReferences(files)].sort().map((name) => [name, shapeOf(documentIn(name))]);
    const digest = createHash('sha256').update(canonical(documents)).digest('hex');
    expect(
      digest,
      'Schemas of recorded events have changed: raise LOG_VERSION unless the previous version reads all new events, then update DIGEST',
    ).to.equal(DIGEST);
  });
});

/** Some files, and all that they refer to. */
function withReferences(files: readonly string[]): ReadonlySet<string> {
  const found = new Set(files);
  for (const file of found) {
    const text = readFileSync(new URL(file, SCHEMAS), 'utf8');
    for (const [, name = ''] of text.matchAll(/"\$ref": "([^"#]+)/g)) found.add(name);
  }
  return found;
}

function documentIn(file: string): unknown {
  return JSON.parse(readFileSync(new URL(file, SCHEMAS), 'utf8'));
}

/** A schema without annotations; a property may have the name of one. */
function shapeOf(schema: unknown, isNames = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => shapeOf(each));
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(([name]) => isNames || !ANNOTATIONS.has(name));
  return Object.fromEntries(
    kept.map(([name, value]) => [name, shapeOf(value, !isNames && (name === 'properties' || name === '$defs'))]),
  );
}
