import { expect } from 'chai';
import { join } from 'node:path';
import { systemAmbient } from '../../src/ambient.js';
import { blueprintStream } from '../../src/blueprint/events.js';
import { BlueprintShelf } from '../../src/blueprint/shelf.js';
import { AppendOutcomeUnknown, BlueprintContended, LogUnavailable, RevisionConflict } from '../../src/errors.js';
import { checkLink, exportedOf, GENESIS_HASH } from '../../src/log/chain.js';
import { openEmbeddedLog } from '../../src/log/embedded/log.js';
import type { EventLog, RecordedEvent } from '../../src/log/port.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const PLAIN = { id: 'plain', name: 'Plain', nodes: [{ id: 'a' }] };

describe('The shelf of blueprints', () => {
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

  const shelfOn = (on: EventLog): BlueprintShelf =>
    new BlueprintShelf({ log: on, ambient: systemAmbient(), instanceId: 'one' });
  const eventsOf = async (id: string): Promise<readonly RecordedEvent[]> => {
    const events: RecordedEvent[] = [];
    for await (const event of log.readStream(blueprintStream(id), {})) events.push(event);
    return events;
  };

  for (const [what, isWritten, error] of [
    ['written without an answer', true, new AppendOutcomeUnknown({ stream: 's' })],
    ['lost without an answer', false, new AppendOutcomeUnknown({ stream: 's' })],
    ['never sent', false, new LogUnavailable()],
  ] as const) {
    it(`makes a change once when its append was ${what}`, async () => {
      let appends = 0;
      const shelf = shelfOn(
        changedLog(log, {
          async append(stream, events, expected) {
            appends += 1;
            if (appends % 2 === 0) return await log.append(stream, events, expected);
            if (isWritten) await log.append(stream, events, expected);
            throw error;
          },
        }),
      );
      await shelf.create(PLAIN);
      await shelf.update('plain', { name: 'New' });
      expect(await shelf.find('plain')).to.include({ name: 'New', version: 2 });
      expect((await eventsOf('plain')).map(({ type }) => type)).to.deep.equal(['BlueprintCreated', 'BlueprintUpdated']);
      expect(appends).to.equal(4);
    });
  }

  it('undoes no change of another instance that comes between its read and its append', async () => {
    const other = shelfOn(log);
    await other.create(PLAIN);
    let isFirst = true;
    const shelf = shelfOn(
      changedLog(log, {
        async append(stream, events, expected) {
          if (isFirst) await other.update('plain', { edges: [{ source: 'a', target: 'b' }] });
          isFirst = false;
          return await log.append(stream, events, expected);
        },
      }),
    );
    expect(await shelf.update('plain', { name: 'Both' })).to.deep.include({ version: 3, name: 'Both' });
    expect((await shelf.find('plain'))?.edges).to.have.length(1);
  });

  it('gives up a change that others are always faster with', async () => {
    const shelf = shelfOn(
      changedLog(log, {
        append: (stream) => Promise.reject(new RevisionConflict({ stream, expected: 'none', actual: 1 })),
      }),
    );
    expect(await rejectionOf(shelf.create(PLAIN))).to.be.instanceOf(BlueprintContended);
  });

  it('chains its events as those of a run, over a deletion too', async () => {
    const shelf = shelfOn(log);
    await shelf.create(PLAIN);
    await shelf.remove('plain');
    await shelf.create(PLAIN);
    const events = await eventsOf('plain');
    expect(events.map(({ type }) => type)).to.deep.equal(['BlueprintCreated', 'BlueprintDeleted', 'BlueprintCreated']);
    let previous = GENESIS_HASH;
    for (const event of events.map(exportedOf)) {
      expect(checkLink(previous, event, systemAmbient().sha256)).to.equal(true);
      previous = event.hash;
    }
  });
});
