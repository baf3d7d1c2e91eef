import { DatabaseSync } from '@photostructure/sqlite';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { openLogReadOnly } from '../../src/eventlog/embedded/read-only.js';
import type { EventLog, RecordedEvent, StreamRange } from '../../src/eventlog/port.js';
import { LOG_VERSION } from '../../src/eventlog/log-version.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { startChild } from '../support/child.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const STREAM = 'run-1';
/** More than a page holds. */
const EVENTS = 1_100;
const PAGE_BYTES = 4096;

describe('A log opened read-only', () => {
  let dir: TempDir;
  let file: string;

  beforeEach(() => {
    dir = tempDir();
    file = join(dir.path, 'log.sqlite');
  });

  afterEach(() => dir.remove());

  const filled = async (): Promise<EventLog> => {
    const log = await openEmbeddedLog({ file });
    const { uuid } = nodeSystem();
    const events = Array.from({ length: EVENTS }, (_, n) => ({
      id: uuid(),
      type: 'Counted',
      data: `{"n":${n}}`,
      metadata: {},
    }));
    await log.append(STREAM, events, 'none');
    return log;
  };
  const eventsIn = async (
    log: Pick<EventLog, 'readStream'>,
    range?: StreamRange,
  ): Promise<readonly RecordedEvent[]> => {
    const events: RecordedEvent[] = [];
    for await (const event of log.readStream(STREAM, range)) events.push(event);
    return events;
  };

  it('returns the same events as the log, in every range', async () => {
    const log = await filled();
    const ranges: readonly StreamRange[] = [
      {},
      { from: 600 },
      { direction: 'backwards', max: 700 },
      { from: 3, max: 2 },
    ];
    const expected = await Promise.all(ranges.map((range) => eventsIn(log, range)));
    await log.close();
    const reader = openLogReadOnly(file);
    for (const [index, range] of ranges.entries()) expect(await eventsIn(reader, range)).to.deep.equal(expected[index]);
    expect(expected[0]).to.have.lengthOf(EVENTS);
    reader.assertUnchanged();
    reader.close();
    reader.close();
  });

  it('returns the events before a corrupt page before it throws', async () => {
    await (await filled()).close();
    const bytes = readFileSync(file);
    const from = Math.floor(bytes.indexOf(`{"n":${EVENTS - 100}}`) / PAGE_BYTES) * PAGE_BYTES;
    writeFileSync(file, bytes.fill(0, from, from + PAGE_BYTES));
    const reader = openLogReadOnly(file);
    let given = 0;
    const reading = async (): Promise<void> => {
      for await (const { revision } of reader.readStream(STREAM)) given = revision + 1;
    };
    expect(await rejectionOf(reading())).to.be.instanceOf(LogUnreadable);
    // A page holds 512 events; the corrupt one is on the second page.
    expect(given).to.equal(512);
    reader.close();
  });

  it('does not block a writer, and reports that the file has changed', async () => {
    await (await filled()).close();
    const reader = openLogReadOnly(file);
    const log = await openEmbeddedLog({ file });
    await log.append('run-2', [{ id: nodeSystem().uuid(), type: 'Counted', data: '{}', metadata: {} }], 'none');
    expect(() => reader.assertUnchanged()).to.throw(LogUnreadable, 'it has changed meanwhile');
    await log.close();
    reader.close();
  });

  it('does not keep a service from starting at the same moment', async () => {
    await (await filled()).close();
    const look = `const { DatabaseSync } = require('@photostructure/sqlite');
      const looking = new DatabaseSync(process.argv[1]);
      looking.prepare('SELECT identity FROM log').get();
      console.log('looking');
      setTimeout(() => looking.close(), 400);`;
    const looker = startChild(process.execPath, ['-e', look, file]);
    await looker.waitFor((lines) => lines.length > 0);
    await (await openEmbeddedLog({ file })).close();
    expect(await looker.ended).to.equal(0);
  });

  it('is refused if the file is missing or is not a log', () => {
    const refused = (what: string) => expect(() => openLogReadOnly(file)).to.throw(LogUnreadable, what);
    refused('there is no such file');
    const database = new DatabaseSync(file);
    refused('the file is empty');
    database.exec('CREATE TABLE other (x)');
    refused('the file is no event log');
    database.exec('PRAGMA application_id = 0x4352534c; PRAGMA user_version = 99');
    refused(
      `it needs a newer version of this service (its events have version 99, this one reads up to ${LOG_VERSION})`,
    );
    database.close();
  });
});
