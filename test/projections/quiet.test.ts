import { expect } from 'chai';
import { join } from 'node:path';
import { SubscriptionDropped } from '../../src/eventlog/errors.js';
import type { EventLog, Followed, NewEvent } from '../../src/eventlog/port.js';
import type { ChainHead } from '../../src/eventsourcing/hash-chain.js';
import { GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import { Projector } from '../../src/projections/projector.js';
import type { ReadModels } from '../../src/projections/read-models.js';
import { openReadModels } from '../../src/projections/read-models.js';
import { RunFeed } from '../../src/projections/run-feed.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import { RunViews } from '../../src/projections/run-views.js';
import type { RunEvent } from '../../src/run/events.js';
import { isOfStep, runStream } from '../../src/run/events.js';
import { OwnAppends } from '../../src/run/live/own-appends.js';
import type { RunState } from '../../src/run/state.js';
import { foldNext, readRun } from '../../src/run/stream.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { readerOf } from '../support/reader-of.js';
import { seededRandom } from '../support/seeded-random.js';
import { slicesOf } from '../support/slices-of.js';
import { openStoryLog, recordedStory, storyReader } from '../support/story-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { startWarmThread } from '../support/warm-threads.js';

const SEED = Number(process.env['SEED'] ?? 20261125);
const CUTS = process.env['SOAK'] === undefined ? 12 : 200;
/** Known by its length: the timer by which a projector looks away. */
const QUIET_MS = 123_456;
const { uuid } = nodeSystem();

describe(`Events of steps, while nobody looks (SEED=${SEED})`, () => {
  let dir: TempDir;
  let log: EventLog;
  let story: readonly NewEvent[];
  let models: ReadModels;
  let projector: Projector;
  let feed: RunFeed;
  let faults: unknown[];
  /** Types of the events that came while some were left out. */
  let came: string[];
  /** Where the record of each run ends. */
  const heads = new Map<string, ChainHead>();
  let lookAway: () => void;
  /** Aborted once the process is killed: its timers do nothing more. */
  let life: AbortController;
  /** Until when nothing comes, by what comes. */
  let heldAt: (followed: Followed) => Promise<void>;
  /** Until when nothing is read. */
  let reading: Promise<void>;
  let own: OwnAppends;
  /** After how many events subscriptions drop, one after the other. */
  let dropsAfter: number[] = [];

  const system = {
    ...nodeSystem(),
    after(ms: number, callback: () => void) {
      const { signal } = life;
      if (ms !== QUIET_MS) return nodeSystem().after(ms / 50, () => (signal.aborted ? undefined : callback()));
      lookAway = callback;
      return () => undefined;
    },
  };

  before(async () => {
    story = await recordedStory();
  });

  beforeEach(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
    await open();
  });

  afterEach(async () => {
    const told = [...faults];
    await close();
    await log.close();
    dir.remove();
    expect(told).to.deep.equal([]);
  });

  async function open(): Promise<void> {
    life = new AbortController();
    [faults, came] = [[], []];
    [heldAt, reading] = [() => Promise.resolve(), Promise.resolve()];
    const onFault = (error: unknown): void => void faults.push(error);
    models = await openReadModels({
      file: join(dir.path, 'views.sqlite'),
      log: { identity: await log.identity(), head: await log.head() },
      from: changedLog(log, {
        async *readStream(stream, range) {
          if (range?.direction !== 'backwards') await reading;
          yield* log.readStream(stream, range);
        },
      }),
      ...{ system, slices: slicesOf(50), onCorrupt: onFault, onFault, startThread: startWarmThread },
      onLost: () => onFault(new Error('the rows are lost')),
      isLive: () => false,
      onWatched: () => projector.watched(),
    });
    await follow(models.views);
  }

  async function follow(views: RunViews): Promise<void> {
    const heard = changedLog(log, {
      async *subscribe(after, following) {
        let [last, count] = [after, 0];
        for await (const followed of log.subscribe(after, following)) {
          await heldAt(followed);
          count += 1;
          if (count > (dropsAfter[0] ?? Number.POSITIVE_INFINITY)) {
            dropsAfter.shift();
            throw new SubscriptionDropped({ last });
          }
          if (followed.kind === 'event') last = followed.event.position;
          if (following.types !== undefined && followed.kind === 'event') came.push(followed.event.type);
          yield followed;
        }
      },
    });
    const onFault = (error: unknown): void => void faults.push(error);
    feed = new RunFeed({
      ...{ reader: readerOf(log), sha256: system.sha256, slices: slicesOf(50) },
      onWatched: () => projector.watched(),
    });
    own = new OwnAppends();
    projector = new Projector({
      ownAppends: own,
      ...{ ...models, views, log: heard, system, quietAfterMs: QUIET_MS, onFault },
      onRecorded: (event) => feed.recorded(event),
    });
    await projector.start();
  }

  /** As a killed process leaves it: nothing more is written. */
  async function close(): Promise<void> {
    await projector.stop();
    await models.close();
    life.abort();
  }

  /** Two looks at whether somebody has looked: the first forgets what was before. */
  async function becomeQuiet(): Promise<void> {
    await allCame();
    await untilTrue(() => {
      lookAway();
      return projector.mode === 'quiet';
    });
  }

  /** Time enough passes to become quiet, if it may. */
  async function looksAway(): Promise<void> {
    for (let time = 0; time < 3; time += 1) {
      lookAway();
      await models.history.unfinished();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Appends a piece of the story as a run's own. */
  async function told(runId: string, from: number, to: number): Promise<void> {
    const of = story[0]?.metadata['$correlationId'] ?? '';
    const facts = story.slice(from, to).map(({ type, data }) => ({ type, data: data.replaceAll(of, runId) }));
    await append(runId, facts);
  }

  async function append(runId: string, facts: readonly { readonly type: string; readonly data: string }[]) {
    const head = heads.get(runId) ?? { seq: -1, hash: GENESIS_HASH };
    const parsed = facts.map(({ type, data }) => ({ type, data: JSON.parse(data) as object }));
    const { events, exported } = sealEvents(head, parsed, {
      ...{ at: system.now(), nextId: uuid, sha256: system.sha256 },
      ...{ instanceId: uuid(), correlationId: runId, causationId: runId },
    });
    await log.append(runStream(runId), events, head.seq === -1 ? 'none' : head.seq);
    heads.set(runId, exported.at(-1) ?? head);
  }

  /** This instance appends a piece of the story as a run's own. */
  async function ownTold(runId: string, from: number, to: number): Promise<void> {
    const before = await stateAt(runId, from);
    await told(runId, from, to);
    const events: { readonly seq: number; readonly id: string }[] = [];
    for await (const { revision: seq, id } of log.readStream(runStream(runId), { from })) events.push({ seq, id });
    await own.during({ before, events, after: await stateAt(runId, to) }, () => Promise.resolve());
  }

  /** A run after its first events. */
  async function stateAt(runId: string, count: number): Promise<RunState> {
    let run: RunState | null = null;
    for await (const event of readRun(log, runId, { max: count })) run = foldNext(runId, run, event);
    if (run === null) throw new Error('A run has begun');
    return run;
  }

  /** Another instance takes a run, and begins its step again. */
  async function claimed(runId: string, epoch: number): Promise<void> {
    const factOf = (wanted: string, fields: object) => {
      const fact = story.find(({ type }) => type === wanted);
      if (fact === undefined) throw new Error(`A run has a ${wanted}`);
      return { type: wanted, data: JSON.stringify({ ...(JSON.parse(fact.data) as object), ...fields }) };
    };
    const [under] = (await stateAt(runId, 1_000)).progress.frontier;
    if (under === undefined) throw new Error('A step is under way');
    await append(runId, [
      factOf('RunClaimed', { epoch, instanceId: uuid(), reason: 'recovered' }),
      factOf('NodeStarted', { node: under.node, step: under.step, attempt: under.attempt + 1 }),
    ]);
  }

  /** Everything that is not left out has come. */
  async function allCame(): Promise<void> {
    const beat = { id: uuid(), type: 'InstanceBeat', data: '{}', metadata: {} };
    const { position } = await log.append(`instance-${uuid()}`, [beat], 'none');
    await projector.reached(position);
  }

  async function foldOf(runId: string): Promise<RunSummary | null> {
    const run = await storyReader(log).fold(runId);
    return run && summaryOf(run);
  }

  async function list(): Promise<ReadonlyMap<string, RunSummary>> {
    await projector.folded(await log.head());
    const rows = await models.history.list({ limit: 100, offset: 0 });
    return new Map(rows.map((row) => [row.id, row]));
  }

  it('do not come, and the rows of the runs that have ended are whole', async () => {
    await becomeQuiet();
    const runIds = Array.from({ length: 5 }, uuid);
    for (const runId of runIds) await told(runId, 0, story.length);
    await allCame();
    expect(projector.mode).to.equal('quiet');
    expect(came.filter((type) => isOfStep({ type }))).to.deep.equal([]);
    expect(came.filter((type) => type === 'RunCompleted')).to.have.length(5);
    for (const runId of runIds) expect(await models.history.find(runId)).to.deep.equal(await foldOf(runId));
  });

  it('count in every list, whatever is recorded before it', async () => {
    const [runId, other] = [uuid(), uuid()];
    await told(other, 0, 5);
    for (let seq = 0; seq < story.length; seq += 1) {
      await becomeQuiet();
      await told(runId, seq, seq + 1);
      if (seq % 3 === 0) await allCame();
      const rows = await list();
      expect(projector.mode).to.not.equal('quiet');
      expect(rows.get(runId)).to.deep.equal(await foldOf(runId));
      expect(rows.get(other)).to.deep.equal(await foldOf(other));
    }
  });

  it('count after a kill at any point, also of runs that are in no memory since', async () => {
    const random = seededRandom(SEED);
    const pick = (below: number): number => Math.floor(random() * below);
    const again = (): Promise<void> => close().then(open);
    const nothing = (): undefined => undefined;
    const doings = [becomeQuiet, becomeQuiet, allCame, allCame, () => models.history.flush(), list, again, nothing];
    for (let cut = 0; cut < CUTS; cut += 1) {
      const runs = Array.from({ length: 3 }, () => ({ runId: uuid(), seq: 0 }));
      for (let step = 0; step < 12; step += 1) {
        const run = runs[pick(3)];
        if (run === undefined || run.seq === story.length) continue;
        const to = Math.min(story.length, run.seq + 1 + pick(5));
        await told(run.runId, run.seq, to);
        run.seq = to;
        await doings[pick(doings.length)]?.();
      }
      const rows = await list();
      for (const { runId, seq } of runs)
        expect(rows.get(runId) ?? null, `cut ${cut}`).to.deep.equal(seq === 0 ? null : await foldOf(runId));
      await becomeQuiet();
    }
  });

  it('count when their run has been in no memory since a start', async () => {
    const runId = uuid();
    await told(runId, 0, 5);
    await list();
    await told(uuid(), 0, story.length);
    await allCame();
    await models.history.flush();
    await close();
    await open();
    expect(models.views.heard(runId)).to.equal(null);
    await becomeQuiet();
    await told(runId, 5, 7);
    await allCame();
    expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
  });

  it('count after a kill, though a row of their run was asked for while they were left out', async () => {
    const runId = uuid();
    await becomeQuiet();
    await told(runId, 0, 3);
    await told(runId, 3, 6);
    await allCame();
    expect((await models.history.unfinished()).map(({ runId: id }) => id)).to.deep.equal([runId]);
    await told(uuid(), 0, story.length);
    await allCame();
    await models.history.flush();
    await close();
    await open();
    expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
  });

  it('are not left out again while somebody still waits for them', async () => {
    await becomeQuiet();
    const runId = uuid();
    let free = (): void => undefined;
    const freed = new Promise<void>((resolve) => (free = resolve));
    heldAt = () => freed;
    await told(runId, 0, 6);
    const listed = list();
    await looksAway();
    expect(projector.mode).to.not.equal('quiet');
    free();
    expect((await listed).get(runId)).to.deep.equal(await foldOf(runId));
  });

  it('count though the subscription drops while they are taken', async () => {
    const runIds = [uuid(), uuid()];
    await becomeQuiet();
    for (const runId of runIds) {
      await told(runId, 0, 4);
      await allCame();
      await told(runId, 4, 9);
    }
    await allCame();
    dropsAfter = [2, 5, 3];
    const rows = await list();
    expect(dropsAfter).to.deep.equal([]);
    for (const runId of runIds) expect(rows.get(runId)).to.deep.equal(await foldOf(runId));
    expect(faults.splice(0)).to.have.length(3);
  });

  it('count though the rows are lost while they are left out', async () => {
    const runId = uuid();
    await told(runId, 0, 4);
    await becomeQuiet();
    await told(runId, 4, 9);
    projector.refold();
    await untilTrue(() => projector.isCaughtUp);
    expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
  });

  it('come to whoever begins to watch a run, none left out', async () => {
    const runId = uuid();
    await told(runId, 0, 3);
    await becomeQuiet();
    await told(runId, 3, 7);
    await allCame();
    const states: number[] = [];
    const leaving = new AbortController();
    await models.views.watch(runId, { onState: ({ head }) => void states.push(head.seq), signal: leaving.signal });
    await looksAway();
    expect(projector.mode).to.not.equal('quiet');
    await told(runId, 7, 12);
    await untilTrue(() => states.at(-1) === 11);
    expect(states).to.deep.equal([6, 7, 8, 9, 10, 11]);
    leaving.abort();
    await becomeQuiet();
    await told(runId, 12, story.length);
    await allCame();
    expect(await models.history.find(runId)).to.deep.equal(await foldOf(runId));
  });

  it('come to whoever follows a run by its events', async () => {
    const runId = uuid();
    await becomeQuiet();
    await told(runId, 0, 6);
    await allCame();
    const seqs: number[] = [];
    const onEvent = ({ seq }: RunEvent): void => void seqs.push(seq);
    const over = feed.follow(runId, { from: 0, onEvent, signal: new AbortController().signal });
    await untilTrue(() => seqs.length === 6);
    await looksAway();
    expect(projector.mode).to.not.equal('quiet');
    await told(runId, 6, 9);
    await told(runId, 9, story.length);
    await over;
    expect(seqs).to.deep.equal(Array.from(story.keys()));
    await becomeQuiet();
  });

  it('are those of the run, also of one that was lost to another instance meanwhile', async () => {
    for (const isWatched of [false, true]) {
      const runId = uuid();
      await told(runId, 0, 4);
      await list();
      await becomeQuiet();
      await ownTold(runId, 4, 6);
      await claimed(runId, 2);
      if (!isWatched) await claimed(runId, 3);
      await allCame();
      const leaving = new AbortController();
      if (isWatched) await models.views.watch(runId, { onState: () => undefined, signal: leaving.signal });
      leaving.abort();
      expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
      await models.history.flush();
      await close();
      await open();
      expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
    }
  });

  it('are not waited for by what is known of own appends, once others have ended their runs', async () => {
    await becomeQuiet();
    for (let count = 0; count < 20; count += 1) {
      const runId = uuid();
      await told(runId, 0, 3);
      await ownTold(runId, 3, 5);
      const cancelled = JSON.stringify({ kind: 'cancelled', error: 'x', node: null });
      await append(runId, [{ type: 'RunFailed', data: cancelled }]);
    }
    await allCame();
    expect(projector.mode).to.equal('quiet');
    expect(own.size).to.equal(0);
  });

  it('are in a row though a watcher has read them and left before they came', async () => {
    const runId = uuid();
    await told(runId, 0, 4);
    await list();
    await becomeQuiet();
    await told(runId, 4, 9);
    await allCame();
    let [read, come] = [(): void => undefined, (): void => undefined];
    let hasCome = false;
    reading = new Promise((resolve) => (read = resolve));
    const fifth = new Promise<void>((resolve) => (come = resolve));
    heldAt = async (followed) => {
      if (followed.kind !== 'event' || followed.event.revision !== 5) return;
      hasCome = true;
      await fifth;
    };
    const leaving = new AbortController();
    const watching = models.views.watch(runId, { onState: () => undefined, signal: leaving.signal });
    await untilTrue(() => hasCome);
    read();
    await watching;
    leaving.abort();
    come();
    expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
  });

  it('are read once they were left out for long, so that little has to come again', async () => {
    const runId = uuid();
    await becomeQuiet();
    await told(runId, 0, 7);
    await allCame();
    expect((await models.history.find(runId))?.seq ?? null).to.not.equal(6);
    models.views.unfolded.count(1_000_000);
    expect(models.views.unfolded.overdue).to.equal(runId);
    await told(uuid(), 0, story.length);
    await allCame();
    expect(models.views.unfolded.overdue).to.equal(null);
    expect(await models.history.find(runId)).to.deep.equal(await foldOf(runId));
    expect(projector.mode).to.equal('quiet');
    await told(runId, 7, 9);
    await allCame();
    expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
  });

  it('are read when something else becomes of their run', async () => {
    const runId = uuid();
    const requested = story.findIndex(({ type }) => type === 'RunStarted') + 1;
    await becomeQuiet();
    await told(runId, 0, requested + 3);
    const claim = story.find(({ type }) => type === 'RunClaimed');
    if (claim === undefined) throw new Error('A run is claimed');
    const data = JSON.stringify({ ...(JSON.parse(claim.data) as object), epoch: 2, reason: 'recovered' });
    await append(runId, [{ ...claim, data }]);
    await allCame();
    expect(came).to.not.include('NodeStarted');
    expect(await models.history.find(runId)).to.deep.equal(await foldOf(runId));
  });

  it('are not left out where they would be read too often', async () => {
    await becomeQuiet();
    for (let read = 0; read < 101; read += 1) models.views.unfolded.gapRead();
    await allCame();
    await untilTrue(() => projector.mode === 'all');
    await looksAway();
    await untilTrue(() => projector.mode === 'quiet');
  });

  it('are not left out while more is in memory than there are bounds for', async () => {
    await projector.stop();
    const runId = uuid();
    const views = new RunViews(storyReader(log), { slices: slicesOf(50), bounds: { runs: 0, text: 0 } });
    await follow(views);
    await becomeQuiet();
    await told(runId, 0, 3);
    await untilTrue(() => projector.mode !== 'quiet');
    await told(runId, 3, 9);
    expect((await list()).get(runId)).to.deep.equal(await foldOf(runId));
  });
});
