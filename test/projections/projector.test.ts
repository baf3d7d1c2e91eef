import { expect } from 'chai';
import { join } from 'node:path';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { BlueprintStore } from '../../src/blueprint/store.js';
import { BlueprintCorrupt } from '../../src/blueprint/errors.js';
import { ServiceStopping } from '../../src/errors.js';
import { LogClosed, SubscriptionDropped } from '../../src/eventlog/errors.js';
import type { EventLog, NewEvent, Position } from '../../src/eventlog/port.js';
import { History } from '../../src/projections/run-history.js';
import { Projector } from '../../src/projections/projector.js';
import { RunStates } from '../../src/run/runs/states.js';
import type { ViewsClient } from '../../src/projections/views/views-client.js';
import { openViews } from '../../src/projections/views/views-client.js';
import { changedLog } from '../support/changed-log.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import { seededRandom } from '../support/seeded-random.js';
import { openStoryLog, recordedStory, appendStory } from '../support/story-log.js';
import { readerOf } from '../support/reader-of.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const { uuid } = nodeSystem();
const hasty = { after: (ms: number, callback: () => void) => nodeSystem().after(ms / 50, callback) };

describe('Projector', () => {
  let dir: TempDir;
  let log: EventLog;
  let stored: ViewsClient;
  let history: History;
  let projector: Projector;
  let faults: unknown[];
  let story: readonly NewEvent[];

  before(async () => {
    story = await recordedStory();
  });

  beforeEach(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
    await open(log);
  });

  afterEach(async () => {
    await close();
    await log.close();
    dir.remove();
  });

  async function open(from: EventLog, timer: Pick<System, 'after'> = hasty): Promise<void> {
    const at = { identity: await log.identity(), head: await log.head() };
    faults = [];
    const onFault = (error: unknown): void => void faults.push(error);
    const deps = { system: hasty, onFault, onLost: onFault, corruptRuns: () => [] };
    stored = await openViews({ file: join(dir.path, 'views.sqlite'), log: at }, deps);
    history = new History({ views: stored, system: timer, onFault });
    projector = new Projector({
      log: from,
      states: new RunStates(readerOf(log)),
      history,
      system: hasty,
      onFault,
    });
  }

  async function close(): Promise<void> {
    await projector.stop();
    await history.flush();
    await stored.close();
  }

  function openShelf(): BlueprintStore {
    return new BlueprintStore({
      log,
      system: nodeSystem(),
      instanceId: 'one',
      hasKeys: () => false,
      models: { providers: ['offline'], builtIn: ['offline'], unpriced: () => null },
    });
  }

  async function tellWhole(runs: number): Promise<readonly string[]> {
    const runIds = Array.from({ length: runs }, uuid);
    await Promise.all(runIds.map((runId) => appendStory(log, runId, story, 0, story.length)));
    return runIds;
  }

  it('has folded all history once start resolves', async () => {
    const runIds = await tellWhole(40);
    expect(projector.isCaughtUp).to.equal(false);
    await projector.start();
    expect(projector.isCaughtUp).to.equal(true);
    for (const runId of runIds) expect((await history.find(runId))?.status).to.equal('completed');
  });

  it('stops without a fault after the log was closed', async () => {
    await close();
    const subscribe = (): never => {
      throw new LogClosed();
    };
    await open(changedLog(log, { subscribe }));
    void projector.start();
    await projector.stop();
    expect(faults).to.deep.equal([]);
  });

  it('has folded an append once its position is reached', async () => {
    await projector.start();
    const runs = Array.from({ length: 30 }, async () => {
      const runId = uuid();
      for (let seq = 0; seq < story.length; seq += 3) {
        const { position } = await appendStory(log, runId, story, seq, seq + 3);
        await projector.waitFor(position);
        expect(await history.find(runId)).not.to.equal(null);
      }
      expect((await history.find(runId))?.status).to.equal('completed');
    });
    await Promise.all(runs);
  });

  it('reaches positions of events that it does not fold', async () => {
    await projector.start();
    const opened = { id: uuid(), type: 'SessionOpened', data: '{}', metadata: {} };
    const { position } = await log.append('session-1', [opened], 'none');
    await projector.waitFor(position);
    expect(faults).to.deep.equal([]);
  });

  it('continues after its checkpoint when it restarts', async () => {
    await tellWhole(3);
    await projector.start();
    await close();
    const head = await log.head();
    const later = await tellWhole(2);
    const starts: (Position | null)[] = [];
    await open(
      changedLog(log, {
        subscribe: (after, following) => {
          starts.push(after);
          return log.subscribe(after, following);
        },
      }),
    );
    await projector.start();
    expect(starts).to.deep.equal([head]);
    for (const runId of later) expect((await history.find(runId))?.status).to.equal('completed');
    expect(await history.list({ limit: 10, offset: 0 })).to.have.lengthOf(5);
  });

  it('folds every event once although subscriptions drop', async () => {
    await close();
    const random = seededRandom(3);
    await open(
      changedLog(log, {
        async *subscribe(after, following) {
          let last = after;
          for await (const followed of log.subscribe(after, following)) {
            if (random() < 0.02) throw new SubscriptionDropped({ last });
            if (followed.kind === 'event') last = followed.event.position;
            yield followed;
          }
        },
      }),
    );
    const runIds = await tellWhole(20);
    await projector.start();
    await projector.waitFor(await log.head());
    for (const runId of runIds) expect((await history.find(runId))?.iterationCount).to.equal(3);
    for (const fault of faults) expect(fault).to.be.instanceOf(SubscriptionDropped);
  });

  it('writes the rows of 50 blueprints before it folds another event', async () => {
    await close();
    await open(log, manualSystem());
    const shelf = openShelf();
    for (let count = 0; count < 50; count += 1) await shelf.create({ id: uuid(), name: 'Good', nodes: [{ id: 'a' }] });
    await projector.start();
    expect(faults).to.deep.equal([]);
    expect(await stored.blueprintIds({ limit: 99, offset: 0 })).to.have.lengthOf(50);
  });

  it('keeps the last valid state of a corrupt blueprint and folds the other events', async () => {
    await close();
    const shelf = openShelf();
    const good = await shelf.create({ id: 'good', name: 'Good', nodes: [{ id: 'a' }] });
    await shelf.update('good', { name: 'Unreadable' });
    const data = JSON.stringify({ blueprint: { ...good, id: 'undated', updatedAt: undefined } });
    await log.append('blueprint-undated', [{ id: uuid(), type: 'BlueprintCreated', data, metadata: {} }], 'none');
    await open(
      changedLog(log, {
        async *subscribe(after, following) {
          for await (const followed of log.subscribe(after, following)) {
            const isUnreadable = followed.kind === 'event' && followed.event.data.includes('Unreadable');
            yield isUnreadable ? { ...followed, event: { ...followed.event, data: '{"blueprint":' } } : followed;
          }
        },
      }),
    );
    const [runId = ''] = await tellWhole(1);
    await projector.start();
    await projector.waitFor(await log.head());
    expect((await history.find(runId))?.status).to.equal('completed');
    expect(await history.blueprintIds({ limit: 10, offset: 0 })).to.deep.equal(['good']);
    const [record] = await history.blueprintRecords(['good']);
    expect(JSON.parse(record ?? '')).to.deep.equal(good);
    expect(faults.map((fault) => fault instanceof BlueprintCorrupt && fault.data.blueprintId)).to.deep.equal([
      'good',
      'undated',
    ]);
  });

  it('rejects a wait whose signal aborts, and no other wait', async () => {
    await projector.start();
    const leaving = new AbortController();
    const runId = uuid();
    const before = await log.head();
    const beyond = '9'.repeat(16) as Position;
    const left = rejectionOf(projector.waitFor(beyond, leaving.signal));
    leaving.abort();
    expect(await left).to.be.instanceOf(ServiceStopping);
    expect(await rejectionOf(projector.waitFor(beyond, leaving.signal))).to.be.instanceOf(ServiceStopping);
    await projector.waitFor(before, leaving.signal);
    await projector.waitFor((await appendStory(log, runId, story, 0, 3)).position);
  });

  it('rejects waits during and after its stop', async () => {
    await projector.start();
    const beyond = '9'.repeat(16) as Position;
    const refused = rejectionOf(projector.waitFor(beyond));
    await projector.stop();
    expect(await refused).to.be.instanceOf(ServiceStopping);
    expect(await rejectionOf(projector.waitFor(beyond))).to.be.instanceOf(ServiceStopping);
  });
});
