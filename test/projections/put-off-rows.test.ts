import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import type { EventLog, NewEvent, Position, RecordedEvent } from '../../src/eventlog/port.js';
import { lastEvent } from '../../src/eventlog/port.js';
import type { RunCorrupt } from '../../src/run/errors.js';
import { runStream } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { isFinished } from '../../src/run/state.js';
import { foldNext, runEventOf } from '../../src/run/stream.js';
import { Projector } from '../../src/projections/projector.js';
import type { ReadModels } from '../../src/projections/read-models.js';
import { openReadModels } from '../../src/projections/read-models.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import { RunViews } from '../../src/projections/run-views.js';
import { UnfoldedRuns } from '../../src/projections/unfolded-runs.js';
import { openViews } from '../../src/projections/views/views-client.js';
import { present } from '../../src/system/element.js';
import { goldenHistories } from '../support/golden-histories.js';
import { openStoryLog, recordedStory, storyReader, tell } from '../support/story-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { startWarmThread } from '../support/warm-threads.js';
import { slicesOf } from '../support/slices-of.js';

const { uuid } = nodeSystem();
const slices = slicesOf(50);
const system = { ...nodeSystem(), after: (ms: number, callback: () => void) => nodeSystem().after(ms / 50, callback) };

describe('The row of a run that nobody here runs or watches', () => {
  let dir: TempDir;
  let log: EventLog;
  let story: readonly NewEvent[];
  let models: ReadModels;
  let projector: Projector;
  let corrupt: RunCorrupt[];
  let written: RunSummary[];

  before(async () => {
    story = await recordedStory();
  });

  beforeEach(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
    await open();
  });

  afterEach(async () => {
    await close();
    await log.close();
    dir.remove();
  });

  async function open(): Promise<void> {
    [corrupt, written] = [[], []];
    models = await openReadModels({
      file: join(dir.path, 'views.sqlite'),
      log: { identity: await log.identity(), head: await log.head() },
      from: log,
      system,
      slices,
      onCorrupt: (error) => corrupt.push(error),
      onLost: () => undefined,
      onFault: () => undefined,
      isLive: () => false,
      startThread: startWarmThread,
      async open(...options) {
        const views = await openViews(...options);
        const write: typeof views.write = (rows, checkpoint) => {
          written.push(...rows.runs);
          return views.write(rows, checkpoint);
        };
        return { ...views, write };
      },
    });
    projector = new Projector({ ...models, log, system, onFault: () => undefined });
    await projector.start();
  }

  /** As a killed process leaves it: nothing more is written. */
  async function close(): Promise<void> {
    await projector.stop();
    await models.close();
  }

  async function told(runId: string, from: number, to: number): Promise<Position> {
    const { position } = await tell(log, runId, story, from, to);
    await projector.reached(position);
    return position;
  }

  async function rowIn(record: EventLog, runId: string): Promise<RunSummary | null> {
    const run = await storyReader(record).fold(runId);
    return run && summaryOf(run);
  }

  it('is written once, when the run has ended, whatever is written of others meanwhile', async () => {
    const [runId, other] = [uuid(), uuid()];
    await told(runId, 0, 5);
    await told(other, 0, story.length);
    await untilTrue(() => written.some(({ id }) => id === other));
    for (let seq = 5; seq < story.length; seq += 1) await told(runId, seq, seq + 1);
    await untilTrue(() => written.some(({ id }) => id === runId));
    expect(written.filter(({ id }) => id === runId)).to.deep.equal([await rowIn(log, runId)]);
  });

  it('counts everything recorded before it is asked for, after each event', async () => {
    const runId = uuid();
    for (let seq = 0; seq < story.length; seq += 1) {
      await told(runId, seq, seq + 1);
      expect(await models.history.list({ limit: 10, offset: 0 })).to.deep.equal([await rowIn(log, runId)]);
    }
  });

  it('is folded again after a kill, from before what no row tells of', async () => {
    const [runId, other] = [uuid(), uuid()];
    await told(uuid(), 0, story.length);
    await told(runId, 0, 9);
    await told(other, 0, story.length);
    await models.history.flush();
    expect(written.map(({ id }) => id))
      .to.include(other)
      .and.to.not.include(runId);
    await close();
    await open();
    const rows = await models.history.list({ limit: 10, offset: 0 });
    expect(rows.find(({ id }) => id === runId)).to.deep.equal(await rowIn(log, runId));
    expect(rows).to.have.length(3);
  });

  it('is that before its first invalid event, and the run is told to be corrupt', async () => {
    const runId = uuid();
    await told(runId, 0, 6);
    const valid = await rowIn(log, runId);
    const invalid = { id: uuid(), type: 'NodeCompleted', data: '{}', metadata: {} };
    const { position } = await log.append(runStream(runId), [invalid], 5);
    await projector.reached(position);
    await told(runId, 7, 9);
    expect(await models.history.list({ limit: 10, offset: 0 })).to.deep.equal([valid]);
    expect(corrupt.map(({ data }) => data.seq)).to.deep.equal([6]);
    await told(runId, 9, story.length);
    expect(await models.history.list({ limit: 10, offset: 0 })).to.deep.equal([valid]);
  });

  it('tells what the whole fold tells, of every golden history', async () => {
    for (const [name, events] of goldenHistories()) {
      const [first] = events;
      if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
      const { runId } = first.data;
      const views = new RunViews(storyReader(log), { slices, isUnheeded: () => true });
      const kept = events.map(({ id, type, at, data, hash }) => {
        return { id, type, data: JSON.stringify(data), metadata: { occurredAt: at, hash } };
      });
      let told: RunSummary | null = null;
      let fold: RunState | null = null;
      for (const [seq, event] of kept.entries()) {
        await log.append(runStream(runId), [event], seq === 0 ? 'none' : seq - 1);
        const recorded = await lastOf(log, runId);
        fold = foldNext(runId, fold, runEventOf(recorded));
        if (views.putOff(runId, recorded, null)) continue;
        const run = views.applyHeld(runId, runEventOf(recorded)) ?? (await views.apply(runId, runEventOf(recorded)));
        told = run && summaryOf(run);
        expect(told, name).to.deep.equal(summaryOf(fold));
      }
      expect(fold && isFinished(fold) ? views.size : 0, name).to.equal(0);
    }
  });

  it('is put once too much has come since: events of the log, or text that is kept', async () => {
    const runId = uuid();
    await told(runId, 0, 5);
    const event = await lastOf(log, runId);
    const many = new UnfoldedRuns({ events: 3, chars: 1_000_000 });
    many.add('one', null, event);
    many.add('two', null, event);
    const next = (): string | null => {
      many.count(1);
      return many.overdue;
    };
    expect(Array.from({ length: 4 }, next)).to.deep.equal([null, null, null, 'one']);
    expect(many.take('one')).to.deep.equal([event]);
    many.put('one');
    expect([next(), many.last('two'), many.last('one')]).to.deep.equal(['two', 4, null]);
    const large = new UnfoldedRuns({ events: 1_000, chars: 1 });
    large.add('one', null, event);
    expect(large.overdue).to.equal('one');
    large.put('one');
    large.add('two', null, null);
    expect(large.overdue).to.equal(null);
  });
});

async function lastOf(log: EventLog, runId: string): Promise<RecordedEvent> {
  return present(await lastEvent(log, runStream(runId)), 'last event of a run');
}
