import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { AppendOutcomeUnknown, DataDirHeld, LogUnavailable, SubscriptionDropped } from '../../src/eventlog/errors.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { all, eventsIn, idsOf, newEvent, numbered } from './contract-bench.js';
import { eventLogContract } from './event-log-contract.js';
import { following } from './open-subscription.js';
import { IS_SOAK } from '../support/soak.js';

const KILLS = IS_SOAK ? 10 : 2;
const LOG_WRITER = fileURLToPath(new URL('../support/log-writer.js', import.meta.url));

eventLogContract('embedded', async () => {
  const dir = tempDir();
  const log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
  const close = async (): Promise<void> => {
    await log.close();
    dir.remove();
  };
  return { log, prefix: '', close };
});

describe('Embedded log: the file', () => {
  const logs = ownLogs();

  it('keeps events, identity and head when it is opened again', async () => {
    const file = logs.file();
    const first = await logs.open(file);
    const events = numbered(3);
    const { position } = await first.append('run-1', events, 'none');
    const identity = await first.identity();
    await first.close();

    const second = await logs.open(file);
    expect(await second.identity()).to.equal(identity);
    expect(await second.head()).to.equal(position);
    expect(idsOf(await all(second.readStream('run-1')))).to.deep.equal(idsOf(events));
    expect(await second.append('run-1', events, 'none')).to.deep.equal({ revision: 2, position });
    const next = await second.append('run-1', numbered(1), 2);
    expect(next.revision).to.equal(3);
    expect(next.position > position).to.equal(true);
  });

  it('gives each log its own identity, and an empty one no head', async () => {
    const [a, b] = [await logs.open(), await logs.open()];
    expect(await a.identity()).not.to.equal(await b.identity());
    expect(await a.head()).to.equal(null);
    expect(await all(a.readAll(null))).to.deep.equal([]);
  });

  it('keeps the last event of streams of a category with keepLast, at exact revisions, and not in its file', async () => {
    const dir = tempDir();
    const file = join(dir.path, 'log.sqlite');
    const log = await openEmbeddedLog({ file, keepLast: ['brief'] });
    const [first, second] = [newEvent(), newEvent()];
    expect((await log.append('brief-a', [first], 'none')).revision).to.equal(0);
    expect(await rejectionOf(log.append('brief-a', [second], 'none'))).to.include({ code: 'log.conflict' });
    expect((await log.append('brief-a', [second], 0)).revision).to.equal(1);
    expect((await log.append('brief-a', [second], 0)).revision).to.equal(1);
    expect(await rejectionOf(log.append('brief-a', [newEvent()], 0))).to.include({ code: 'log.conflict' });
    expect((await all(log.readStream('brief-a'))).map(({ id, revision }) => ({ id, revision }))).to.deep.equal([
      { id: second.id, revision: 1 },
    ]);
    expect(await all(log.readStream('brief-b'))).to.deep.equal([]);
    expect([await log.head(), await all(log.readAll(null))]).to.deep.equal([null, []]);
    await log.close();
    dir.remove();
  });

  it('keeps data byte for byte', async () => {
    const log = await logs.open();
    const data = '{ "b" : 1.0e2,\n\t"a":"\\u00e9 é 漢字 🜁" }';
    await log.append('run-1', [{ ...newEvent(), data }], 'none');
    expect((await all(log.readStream('run-1')))[0]?.data).to.equal(data);
  });

  it('appends to more streams than its cache holds', async () => {
    const log = await logs.open();
    const streams = Array.from({ length: 21_000 }, (_, n) => `run-${n}`);
    await Promise.all(streams.map((stream) => log.append(stream, [newEvent()], 'none')));
    expect((await log.append('run-0', [newEvent()], 0)).revision).to.equal(1);
    expect((await log.append('run-20999', [newEvent()], 0)).revision).to.equal(1);
  });

  it('is refused if it is not a database', async () => {
    const file = logs.file();
    writeFileSync(file, 'no database at all, but long enough to be taken for the header of one\n'.repeat(20));
    expect(String(await rejectionOf(openEmbeddedLog({ file })))).to.include(file);
  });

  it('is refused if its folder is missing', async () => {
    const file = join(logs.file(), 'log.sqlite');
    expect(String(await rejectionOf(openEmbeddedLog({ file })))).to.include(file);
  });

  it('is refused while another process has it open, until that process is killed', async () => {
    const file = logs.file();
    const child = startWriter(file, 0);
    await child.waitFor((lines) => lines.includes('open'));
    expect(await rejectionOf(openEmbeddedLog({ file }))).to.be.instanceOf(DataDirHeld);
    await child.kill();
    await logs.open(file);
  });
});

describe('Embedded log: failures', () => {
  // One of these tests kills the thread.
  const logs = ownLogs();

  it('keeps every acknowledged append when the process is killed under load', async () => {
    const file = logs.file();
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const child = startWriter(file, 30);
      await child.waitFor((lines) => lines.length > 1_000 * kill);
      await child.kill();
      const log = await logs.open(file);
      await expectAcknowledged(log, child.lines);
      await log.close();
    }
  });

  it('reports an unknown outcome for a failed write, refuses later appends, and loses nothing', async () => {
    const file = logs.file();
    // No file may grow past 2 MiB: writing the journal fails as on a full disk.
    const child = startChild('sh', ['-c', 'ulimit -f 4096 && exec "$0" "$@"', process.execPath, LOG_WRITER, file, '1']);
    expect(await child.ended).to.equal(0);
    const failures = child.lines.filter((line) => line.startsWith('failed'));
    expect(failures).to.deep.equal(['failed log.outcome-unknown', 'failed log.unavailable', 'failed log.unavailable']);
    const log = await logs.open(file);
    await expectAcknowledged(log, child.lines);
  });

  it('reports an unknown outcome for sent appends and refuses all other calls when its thread dies', async () => {
    const spawned = new Promise<Worker>((resolve) => process.once('worker', resolve));
    const log = await logs.open();
    const worker = await spawned;
    await log.append('run-1', numbered(1), 'none');
    const subscription = following(log, null);
    await subscription.waitFor((seen) => eventsIn(seen).length === 1);
    const died = new Promise((resolve) => worker.once('exit', resolve));
    // A message that is no call makes the thread throw and end. The test sends it before the append, in the same turn.
    setImmediate(() => worker.postMessage(null));
    const underWay = rejectionOf(log.append('run-1', numbered(1), 0));
    await new Promise((resolve) => setImmediate(resolve));
    const waiting = rejectionOf(log.append('run-2', numbered(1), 'none'));
    await died;
    expect(await underWay).to.be.instanceOf(AppendOutcomeUnknown);
    expect(await waiting).to.be.instanceOf(LogUnavailable);
    expect(await rejectionOf(subscription.ended)).to.be.instanceOf(SubscriptionDropped);
    const calls = [() => log.append('run-1', numbered(1), 0), () => log.ping(), () => all(log.readAll(null))];
    for (const call of calls) expect(await rejectionOf(call())).to.be.instanceOf(LogUnavailable);
    await log.close();
  });

  it('refuses one append more than may wait', async () => {
    const log = await logs.open();
    const event = newEvent();
    const settled = await Promise.allSettled(
      Array.from({ length: 50_001 }, () => log.append('run-1', [event], 'none')),
    );
    expect(settled.filter(({ status }) => status === 'fulfilled')).to.have.length(50_000);
    const [refused] = settled.flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []));
    expect(refused).to.be.instanceOf(LogUnavailable);
    expect(await all(log.readStream('run-1'))).to.have.length(1);
  });
});

describe('Embedded log: loss', () => {
  const logs = ownLogs();

  /** A log with events in the file and in the journal, whose process was killed. */
  const killed = async (): Promise<string> => {
    const file = logs.file();
    const log = await logs.open(file);
    await log.append('run-1', numbered(3), 'none');
    await log.close();
    const child = startWriter(file, 3);
    await child.waitFor((lines) => lines.length > 100);
    await child.kill();
    return file;
  };
  const refusal = async (file: string): Promise<string> => String(await rejectionOf(openEmbeddedLog({ file })));

  it('is detected when the journal is missing, truncated or changed after a kill', async () => {
    const file = await killed();
    const parts = ['', '-wal', '-head'].map((suffix) => ({ suffix, bytes: readFileSync(file + suffix) }));
    const restored = (change: (journal: Buffer) => Buffer | null): string => {
      const copy = logs.file();
      for (const { suffix, bytes } of parts) {
        const found = suffix === '-wal' ? change(Buffer.from(bytes)) : bytes;
        if (found !== null) writeFileSync(copy + suffix, found);
      }
      return copy;
    };
    const flipped = (journal: Buffer): Buffer => {
      journal.writeUInt8(journal.readUInt8(journal.length / 2) ^ 1, journal.length / 2);
      return journal;
    };
    expect(await refusal(restored(() => null))).to.match(/ends at event 3: \d+ acknowledged after that are missing/);
    expect(await refusal(restored(() => Buffer.alloc(0)))).to.include('are missing');
    expect(await refusal(restored((journal) => journal.subarray(0, journal.length / 2)))).to.include('are missing');
    expect(await refusal(restored(flipped))).to.include('are missing');
    const intact = await logs.open(restored((journal) => journal));
    expect((await all(intact.readAll(null))).length).to.be.greaterThan(100);
  });

  it('has gaps after SQL has deleted an event, and none before', async () => {
    const file = logs.file();
    const log = await logs.open(file);
    await log.append('run-1', numbered(3), 'none');
    await log.close();
    const reopened = await logs.open(file);
    expect(await reopened.hasGaps()).to.equal(false);
    await reopened.close();
    const database = new DatabaseSync(file);
    database.exec('DELETE FROM events WHERE revision = 1');
    database.close();
    expect(await (await logs.open(file)).hasGaps()).to.equal(true);
  });

  it('is not assumed when the head file is missing or truncated', async () => {
    const file = await killed();
    writeFileSync(`${file}-head`, '{"identity":');
    await (await logs.open(file)).close();
    rmSync(`${file}-head`);
    await (await logs.open(file)).close();
  });

  /** An open log, and its failure. */
  const watched = async (): Promise<{ file: string; log: EventLog; faults: readonly LogUnavailable[] }> => {
    const [file, faults]: [string, LogUnavailable[]] = [logs.file(), []];
    const log = await openEmbeddedLog({ file, onBroken: (fault) => faults.push(fault) });
    await log.append('run-1', numbered(1), 'none');
    return { file, log, faults };
  };

  it('by a replaced file ends the log, and no later append is acknowledged', async () => {
    const { file, log, faults } = await watched();
    cpSync(file, `${file}-copy`);
    renameSync(`${file}-copy`, file);
    expect(await rejectionOf(log.append('run-2', numbered(1), 'none'))).to.be.instanceOf(AppendOutcomeUnknown);
    expect(await rejectionOf(log.ping())).to.be.instanceOf(LogUnavailable);
    expect(String(faults[0]?.cause)).to.include('was removed or replaced while it was open');
    await log.close();
  });

  it('is not assumed while the file cannot be checked, as in a folder without permissions', async () => {
    const dir = tempDir();
    const folder = join(dir.path, 'log');
    mkdirSync(folder);
    const log = await openEmbeddedLog({ file: join(folder, 'log.sqlite') });
    // A link to itself simulates a folder without permissions, because root may read every folder.
    renameSync(folder, `${folder}-2`);
    symlinkSync(folder, folder);
    await log.append('run-1', numbered(1), 'none');
    await log.ping();
    rmSync(folder);
    renameSync(`${folder}-2`, folder);
    await log.close();
    dir.remove();
  });

  it('by a removed file ends the log while it is idle', async () => {
    const { file, log, faults } = await watched();
    rmSync(file);
    await untilTrue(() => faults.length > 0);
    expect(String(faults[0]?.cause)).to.include('was removed');
    await log.close();
  });
});

describe('Embedded log: subscribers', () => {
  const logs = ownLogs();

  it('receive every event once, in order, after their buffer has overflowed', async () => {
    const log = await logs.open();
    const abort = new AbortController();
    const subscription = log.subscribe(null, { signal: abort.signal })[Symbol.asyncIterator]();
    expect(await subscription.next()).to.deep.include({ value: { kind: 'caughtUp' } });
    for (let n = 0; n < 25; n += 1) await log.append(`run-${n}`, numbered(800), 'none');
    const ids: string[] = [];
    let more = log.append('run-more', numbered(10), 'none');
    while (ids.length < 20_020) {
      const next = await subscription.next();
      if (next.done === true || next.value.kind !== 'event') expect.fail('an event is expected');
      else ids.push(next.value.event.id);
      if (ids.length === 15_000) more = log.append('run-more', numbered(10), 9);
    }
    await more;
    abort.abort();
    expect(await subscription.next()).to.deep.equal({ value: undefined, done: true });
    expect(ids).to.deep.equal(idsOf(await all(log.readAll(null))));
  });

  it('receive an event before its append resolves', async () => {
    const log = await logs.open();
    const { collected, waitFor, stop } = following(log, null);
    await waitFor((seen) => seen.length === 1);
    for (let n = 0; n < 100; n += 1) {
      await log.append(`run-${n}`, numbered(1), 'none');
      await new Promise((resolve) => setImmediate(resolve));
      expect(eventsIn(collected)).to.have.length(n + 1);
    }
    await stop();
  });

  it('receive checkpoints past stored and live events of other categories', async () => {
    const log = await logs.open();
    const live = following(log, null, ['run']);
    await live.waitFor((seen) => seen.length === 1);
    for (let n = 0; n < 5; n += 1) await log.append(`document-${n}`, numbered(800), 'none');
    const stored = following(log, null, ['run']);
    for (const { waitFor, stop, collected } of [live, stored]) {
      await waitFor((seen) => seen.some(({ kind }) => kind === 'checkpoint'));
      await stop();
      expect(eventsIn(collected)).to.deep.equal([]);
    }
  });
});

function startWriter(file: string, writers: number): Child {
  return startChild(process.execPath, [LOG_WRITER, file, String(writers)]);
}

/** Expects every acknowledged event at its acknowledged revision, and no gap in any stream. */
async function expectAcknowledged(log: EventLog, lines: readonly string[]): Promise<void> {
  const stored = new Map<string, string>();
  const revisions = new Map<string, number>();
  for await (const { stream, revision, id } of log.readAll(null)) {
    expect(revision).to.equal((revisions.get(stream) ?? -1) + 1);
    revisions.set(stream, revision);
    stored.set(`${stream} ${revision}`, id);
  }
  const acknowledged = lines.filter((line) => line.startsWith('run-'));
  expect(acknowledged.length).to.be.greaterThan(0);
  for (const line of acknowledged) {
    const [stream = '', revision = '', id] = line.split(' ');
    expect(stored.get(`${stream} ${revision}`)).to.equal(id);
  }
}

/**
 * Opens logs in the folder of a block of tests, and closes those still open after each test, also after a failed one.
 */
function ownLogs(): {
  file(): string;
  open(file?: string): Promise<EventLog>;
} {
  let dir: TempDir | null = null;
  const opened: EventLog[] = [];
  before(() => {
    dir = tempDir();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((log) => log.close()));
  });
  after(() => dir?.remove());
  const file = (): string => join(dir?.path ?? '', `log-${randomUUID()}.sqlite`);
  const open = async (path = file()): Promise<EventLog> => {
    const log = await openEmbeddedLog({ file: path });
    opened.push(log);
    return log;
  };
  return { file, open };
}
