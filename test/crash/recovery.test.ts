import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { AppendOutcomeUnknown, LogUnavailable, SubscriptionDropped } from '../../src/eventlog/errors.js';
import { KeyReused, RunCorrupt, RunFinished, RunUnknown, TooManyPending } from '../../src/run/errors.js';
import { ServiceStopping } from '../../src/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { RunFact } from '../../src/run/events.js';
import { runStream } from '../../src/run/events.js';
import { failureOf, finalDraftOf, isFinished } from '../../src/run/state.js';
import { sealAppend } from '../../src/eventsourcing/aggregate.js';
import { factsAfter, foldRun } from '../../src/run/stream.js';
import { changedLog } from '../support/changed-log.js';
import { callOf, countedCalls, countedModel } from '../support/counted-model.js';
import { damageEvent, dropEvent } from '../support/damaged-log.js';
import { instantModel } from '../support/instant-model.js';
import type { OpenEngineOptions, TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import { rejectionOf } from '../support/rejection.js';
import { scriptedModel } from '../support/scripted-model.js';
import { seededRandom } from '../support/seeded-random.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
/** The number of runs, halved without a soak. */
const many = (runs: number): number => (IS_SOAK ? runs : runs / 2);
const { uuid } = nodeSystem();

describe('Recovery', () => {
  let dir: TempDir;
  let engines: TestEngine[];

  beforeEach(() => {
    dir = tempDir();
    engines = [];
  });

  afterEach(async () => {
    for (const engine of engines) await engine.stop();
    dir.remove();
  });

  async function open(options: Partial<OpenEngineOptions> = {}): Promise<TestEngine> {
    const engine = await openTestEngine({ path: dir.path, model: instantModel(), ...options });
    let stopped: Promise<void> | null = null;
    const kept = { ...engine, stop: () => (stopped ??= engine.stop()) };
    engines.push(kept);
    return kept;
  }

  /** Opens an engine and recovers its runs. */
  async function openRecovered(options: Partial<OpenEngineOptions> = {}): Promise<TestEngine> {
    const engine = await open(options);
    await engine.recover();
    return engine;
  }

  /** Ends an engine like a kill: nothing more reaches the log. */
  async function kill(engine: TestEngine): Promise<void> {
    await engine.log.close();
    await engine.stop();
  }

  const held = () => scriptedModel(() => 'hold');

  describe('of active runs', () => {
    it('resumes runs that a stopping engine has released', async () => {
      const runIds = [uuid(), uuid()];
      const model = held();
      const first = await openRecovered({ model });
      await startAll(first, runIds);
      await model.called(2);
      await first.stop();

      const second = await openRecovered();
      await allFinished(second, runIds);
      for (const runId of runIds) {
        const events = await checkRecord(second.log, runId);
        expect(factsOf(events, 'RunReleased').map(({ reason }) => reason)).to.deep.equal(['shutdown']);
        expect(factsOf(events, 'RunClaimed').map(({ reason }) => reason)).to.deep.equal(['started', 'handover']);
        expect(events.at(-1)?.type).to.equal('RunCompleted');
      }
    });

    it('takes over the runs of a killed engine', async () => {
      const runId = uuid();
      const model = held();
      const first = await openRecovered({ model });
      await first.registry.start(runRequest(runId));
      await model.called(1);
      await kill(first);

      const second = await openRecovered();
      await allFinished(second, [runId]);
      const events = await checkRecord(second.log, runId);
      expect(factsOf(events, 'RunClaimed').map(({ reason }) => reason)).to.deep.equal(['started', 'recovered']);
      expect(factsOf(events, 'RunReleased')).to.deep.equal([]);
    });

    it('does not claim again the runs that the engine started before its recovery', async () => {
      const runIds = Array.from({ length: 5 }, uuid);
      const model = held();
      const engine = await open({ model });
      await startAll(engine, runIds);
      await model.called(5);
      await engine.recover();
      await eventually(async () => expect(await engine.queries.list({ limit: 9, offset: 0 })).to.have.lengthOf(5));
      const before = await Promise.all(runIds.map((runId) => recordOf(engine.log, runId)));
      await engine.stop();

      expect(before.map((events) => factsOf(events, 'RunClaimed').length)).to.deep.equal([1, 1, 1, 1, 1]);
      expect(model.requests.length).to.equal(5);
      expect(engine.faults).to.deep.equal([]);
    });

    it('removes finished runs from memory', async () => {
      const engine = await openRecovered();
      const runIds = Array.from({ length: many(50) }, uuid);
      await startAll(engine, runIds);
      await allFinished(engine, runIds);
      await engine.queries.list({ limit: 1, offset: 0 });
      expect(engine.states.size).to.equal(0);
      expect(runIds.map((runId) => engine.registry.live(runId))).to.deep.equal(runIds.map(() => null));
    });
  });

  describe('of pending runs', () => {
    it('starts pending runs in their order when slots become free', async () => {
      const model = held();
      const engine = await openRecovered({ model, maxActiveRuns: 1 });
      const runIds = Array.from({ length: 6 }, uuid);
      await startAll(engine, runIds);
      for (const runId of runIds) {
        const run = await runWhen(engine, runId, ({ phase }) => phase.status === 'running');
        expect(run.ownership.epoch).to.equal(1);
        await engine.registry.cancel(runId);
      }
      expect(await startOrder(engine)).to.deep.equal(runIds);
    });

    it('starts pending runs in their order after a restart', async () => {
      const first = await openRecovered({ model: held(), maxActiveRuns: 1 });
      const runIds = Array.from({ length: 12 }, uuid);
      await startAll(first, runIds);
      await kill(first);

      const second = await openRecovered({ maxActiveRuns: 1 });
      await allFinished(second, runIds);
      expect(await startOrder(second)).to.deep.equal(runIds);
    });

    it('never runs more runs at once than allowed, and ends all of them', async () => {
      let atOnce = 0;
      let most = 0;
      const engine = await openRecovered({
        maxActiveRuns: 3,
        decorate: (log) =>
          changedLog(log, {
            async append(stream, events, expected) {
              const appended = await log.append(stream, events, expected);
              atOnce += events.filter(({ type }) => type === 'RunStarted').length;
              most = Math.max(most, atOnce);
              atOnce -= events.filter(({ type }) => type === 'RunCompleted').length;
              return appended;
            },
          }),
      });
      const runIds = Array.from({ length: many(40) }, uuid);
      await startAll(engine, runIds);
      await allFinished(engine, runIds);
      expect(most).to.equal(3);
    });

    it('reads at most 64 streams at once when it resumes many runs', async () => {
      const before = await openRecovered({ model: held() });
      const runIds = Array.from({ length: many(200) }, uuid);
      await startAll(before, runIds);
      await before.stop();
      let [reading, most] = [0, 0];
      const counting = (log: EventLog): EventLog =>
        changedLog(log, {
          async *readStream(stream, range) {
            reading += 1;
            most = Math.max(most, reading);
            yield* log.readStream(stream, range);
            reading -= 1;
          },
        });
      const engine = await openRecovered({ decorate: counting });
      // The list reads no streams.
      const statuses = async (): Promise<readonly string[]> =>
        (await engine.queries.list({ limit: 500, offset: 0 })).map(({ status }) => status);
      await untilTrue(async () => (await statuses()).every((status) => status === 'completed'));
      expect(await statuses()).to.have.length(runIds.length);
      expect(most).to.be.at.most(64);
    });

    it('refuses concurrent starts when 10,000 runs wait', async () => {
      const engine = await openRecovered({ model: held(), maxActiveRuns: 1 });
      await engine.registry.start(runRequest(uuid()));
      engine.registry.recover(Array.from({ length: 9_990 }, () => ({ runId: uuid() })));
      const starts = await Promise.allSettled(
        Array.from({ length: 50 }, () => engine.registry.start(runRequest(uuid()))),
      );
      const refused = starts.filter((each) => each.status === 'rejected').map((each): unknown => each.reason);
      expect(refused.length).to.equal(40);
      for (const error of refused) expect(error).to.be.instanceOf(TooManyPending);
      expect(await engine.queries.list({ limit: 100, offset: 0 })).to.have.lengthOf(11);
    });
  });

  onEmbeddedLog(() =>
    it('does not resume a run whose last events are missing', async () => {
      const before = await openRecovered({ model: held() });
      const [cut, whole] = [uuid(), uuid()];
      await startAll(before, [cut]);
      await runWhen(before, cut, ({ phase }) => phase.status === 'running');
      await before.registry.start(runRequest(whole));
      const last = (await recordOf(before.log, cut)).at(-1);
      await before.registry.cancel(whole);
      before.registry.abandon();
      await before.stop();
      dropEvent(dir.path, last?.id ?? '');
      const engine = await openRecovered();
      await untilTrue(() => engine.faults.length > 0);
      expect(await rejectionOf(engine.queries.find(cut))).to.be.instanceOf(RunCorrupt);
      expect(await recordOf(engine.log, cut)).to.have.length(last?.seq ?? 0);
    }),
  );

  describe('with cancels and repeated starts', () => {
    it('never starts a cancelled pending run', async () => {
      const engine = await openRecovered({ model: held(), maxActiveRuns: 1 });
      const [running, pending, next] = [uuid(), uuid(), uuid()];
      await startAll(engine, [running, pending, next]);
      expect(failureOf(await engine.registry.cancel(pending))?.kind).to.equal('cancelled');
      await engine.registry.cancel(running);
      await runWhen(engine, next, ({ phase }) => phase.status === 'running');
      const events = await checkRecord(engine.log, pending);
      expect(events.map(({ type }) => type)).to.deep.equal(['RunRequested', 'RunFailed']);
    });

    it('aborts the call of a cancelled run and ignores its answer', async () => {
      const model = held();
      const engine = await openRecovered({ model });
      const runId = uuid();
      await engine.registry.start(runRequest(runId));
      await model.called(1);
      const [call] = model.held;
      const run = await engine.registry.cancel(runId);
      expect(failureOf(run)?.error).to.equal('Cancelled by the user');
      expect(call?.signal.aborted).to.equal(true);
      call?.release();
      await nextTurn();
      const events = await checkRecord(engine.log, runId);
      expect(events.at(-1)?.type).to.equal('RunFailed');
      expect(factsOf(events, 'NodeCompleted')).to.deep.equal([]);
      expect(engine.faults).to.deep.equal([]);
    });

    it('refuses to cancel a finished or unknown run', async () => {
      const engine = await openRecovered();
      const runId = uuid();
      await engine.registry.start(runRequest(runId));
      await allFinished(engine, [runId]);
      expect(await rejectionOf(engine.registry.cancel(runId))).to.be.instanceOf(RunFinished);
      expect(await rejectionOf(engine.registry.cancel(uuid()))).to.be.instanceOf(RunUnknown);
    });

    for (const status of ['pending', 'running'] as const) {
      it(`fails a ${status} run once when a hundred requests cancel it at once`, async () => {
        const engine = await openRecovered({ model: held(), maxActiveRuns: 1 });
        const runIds = [uuid(), uuid()];
        await startAll(engine, runIds);
        const runId = runIds[status === 'running' ? 0 : 1] ?? '';
        const cancels = await Promise.allSettled(Array.from({ length: 100 }, () => engine.registry.cancel(runId)));
        expect(cancels.filter((each) => each.status === 'fulfilled').length).to.equal(1);
        for (const each of cancels) if (each.status === 'rejected') expect(each.reason).to.be.instanceOf(RunFinished);
        expect(factsOf(await checkRecord(engine.log, runId), 'RunFailed').length).to.equal(1);
      });
    }

    it('ends each run once when it is cancelled at a random time', async () => {
      const engine = await openRecovered({ maxActiveRuns: 10 });
      const random = seededRandom(SEED);
      const runIds = Array.from({ length: many(60) }, uuid);
      await startAll(engine, runIds);
      const cancels = runIds.map(async (runId) => {
        const seq = Math.floor(random() * 18);
        await runWhen(engine, runId, (run) => run.head.seq >= seq || isFinished(run));
        return await engine.registry.cancel(runId).catch((error: unknown) => error);
      });
      for (const outcome of await Promise.all(cancels)) {
        if (outcome instanceof Error) expect(outcome).to.be.instanceOf(RunFinished);
      }
      for (const runId of runIds) expect((await checkRecord(engine.log, runId)).at(-1)?.type).to.match(/^Run(C|F)/);
      expect(engine.faults).to.deep.equal([]);
    });

    for (const maxActiveRuns of [1, 1_000]) {
      it(`makes one run of a hundred equal concurrent starts with ${maxActiveRuns} slots`, async () => {
        const engine = await openRecovered({ maxActiveRuns });
        const runId = uuid();
        const starts = await Promise.all(
          Array.from({ length: 100 }, () => engine.registry.start(runRequest(runId, { topic: 'One' }))),
        );
        expect(new Set(starts.map((each) => each.inputTopic))).to.deep.equal(new Set(['One']));
        await allFinished(engine, [runId]);
        const events = await checkRecord(engine.log, runId);
        expect(factsOf(events, 'RunRequested').length).to.equal(1);
        expect(factsOf(events, 'RunClaimed').length).to.equal(1);
        const other = await rejectionOf(engine.registry.start(runRequest(runId, { topic: 'Other' })));
        expect(other).to.be.instanceOf(KeyReused);
        await fillsAllPlaces(engine, maxActiveRuns);
      });
    }

    it('gives a start that is repeated after a restart its first answer', async () => {
      const runId = uuid();
      const first = await openRecovered();
      const requested = await first.registry.start(runRequest(runId, { topic: 'One' }));
      await first.stop();
      const second = await openRecovered();
      expect(await second.registry.start(runRequest(runId, { topic: 'One' }))).to.deep.include(requested);
      expect(await rejectionOf(second.registry.start(runRequest(runId, { topic: 'Other' })))).to.be.instanceOf(
        KeyReused,
      );
    });

    it('refuses a start after the stop', async () => {
      const engine = await openRecovered();
      await engine.stop();
      expect(await rejectionOf(engine.registry.start(runRequest(uuid())))).to.be.instanceOf(ServiceStopping);
    });
  });

  describe('of the read models', () => {
    it('gives the same answers, byte for byte, after the views were deleted', async () => {
      const before = await open();
      const runIds = await storyOf(before);
      const told = await answersOf(before, runIds);
      await before.stop();
      rmSync(join(dir.path, 'views'), { recursive: true });
      const after = await openRecovered({ model: held() });
      expect(await answersOf(after, runIds)).to.equal(told);
    });

    it('shows a run by id and in the list as soon as its start returns', async () => {
      const engine = await openRecovered({ maxActiveRuns: 20 });
      const looks = Array.from({ length: many(100) }, async () => {
        const runId = uuid();
        await engine.registry.start(runRequest(runId));
        const [found, page] = await Promise.all([
          engine.queries.find(runId),
          engine.queries.list({ limit: 100, offset: 0 }),
        ]);
        expect(found?.id).to.equal(runId);
        expect(page.map(({ id }) => id)).to.include(runId);
      });
      await Promise.all(looks);
    });

    it('shows a cancelled run in the list as soon as the cancel returns', async () => {
      const engine = await openRecovered({ model: held() });
      const runIds = Array.from({ length: 20 }, uuid);
      await startAll(engine, runIds);
      for (const runId of runIds) {
        await engine.registry.cancel(runId);
        const page = await engine.queries.list({ limit: 100, offset: 0 });
        expect(page.find(({ id }) => id === runId)?.status).to.equal('failed');
        expect((await engine.queries.find(runId))?.status).to.equal('failed');
      }
    });

    it('lists runs at once when the newest events belong to other categories', async () => {
      const engine = await openRecovered();
      const runId = uuid();
      await engine.registry.start(runRequest(runId));
      await allFinished(engine, [runId]);
      const event = { id: uuid(), type: 'BlueprintCreated', data: '{}', metadata: {} };
      await engine.log.append('blueprint-b1', [event], 'none');
      const page = await engine.queries.list({ limit: 10, offset: 0 });
      expect(page.map(({ id }) => id)).to.deep.equal([runId]);
    });
  });

  describe('with a log that fails temporarily', () => {
    const hasty: System = { ...nodeSystem(), after: (ms, callback) => nodeSystem().after(ms / 50, callback) };

    /** A log whose calls fail at random, before or after they take effect. */
    function moody(log: EventLog, random: () => number): EventLog {
      return changedLog(log, {
        async append(stream, events, expected) {
          const mood = random();
          if (mood < 0.15) throw new LogUnavailable();
          if (mood < 0.3) throw new AppendOutcomeUnknown({ stream });
          const appended = await log.append(stream, events, expected);
          if (mood < 0.45) throw new AppendOutcomeUnknown({ stream });
          return appended;
        },
        async *readStream(stream, range) {
          if (random() < 0.2) throw new LogUnavailable();
          yield* log.readStream(stream, range);
        },
        async *subscribe(after, following) {
          let last = after;
          for await (const followed of log.subscribe(after, following)) {
            if (random() < 0.05) throw new SubscriptionDropped({ last });
            if (followed.kind === 'event') last = followed.event.position;
            yield followed;
          }
        },
      });
    }

    it('neither fails nor repeats a run', async () => {
      const random = seededRandom(SEED);
      const callsFile = join(dir.path, 'calls.txt');
      const runIds = Array.from({ length: 30 }, uuid);
      const engine = await openRecovered({
        maxActiveRuns: 10,
        system: hasty,
        model: countedModel(callsFile),
        decorate: (log) => moody(log, random),
      });
      const requests = runIds.map((runId) => runRequest(runId, { topic: runId }));
      await Promise.all(requests.map((request) => engine.registry.start(request)));
      const ends = runIds.map((runId) => eventually(() => runWhen(engine, runId, isFinished)));
      for (const run of await Promise.all(ends))
        expect(finalDraftOf(run), JSON.stringify(failureOf(run))).to.equal('Draft 4');
      await engine.stop();

      const calm = await openRecovered();
      for (const runId of runIds) {
        const events = await checkRecord(calm.log, runId);
        expect(factsOf(events, 'RunClaimed').length).to.equal(1);
        const calls = countedCalls(callsFile);
        for (const started of factsOf(events, 'NodeStarted')) expect(calls.get(callOf(started))).to.equal(1);
      }
    });

    it('resumes every run although the log fails at random from the start', async () => {
      const random = seededRandom(SEED + 1);
      const first = await openRecovered({ model: held(), maxActiveRuns: 10 });
      const runIds = Array.from({ length: 20 }, uuid);
      await startAll(first, runIds);
      await kill(first);

      const second = await openRecovered({
        maxActiveRuns: 10,
        system: hasty,
        decorate: (log) => moody(log, random),
      });
      const ends = runIds.map((runId) => eventually(() => runWhen(second, runId, isFinished)));
      for (const run of await Promise.all(ends)) expect(finalDraftOf(run)).to.equal('Draft 4');
    });

    it('calls no model while the outcome of the start is unknown', async () => {
      const model = held();
      let isDown = true;
      const engine = await openRecovered({
        model,
        system: hasty,
        decorate: (log) =>
          changedLog(log, {
            async append(stream, events, expected) {
              const appended = await log.append(stream, events, expected);
              if (isDown) throw new AppendOutcomeUnknown({ stream });
              return appended;
            },
          }),
      });
      const runId = uuid();
      const starting = engine.registry.start(runRequest(runId));
      await runWhen(engine, runId, ({ phase }) => phase.status === 'running').catch(() => null);
      await eventually(async () => expect((await recordOf(engine.log, runId)).length).to.equal(4));
      expect(model.requests.length).to.equal(0);
      isDown = false;
      await starting;
      await model.called(1);
      expect((await checkRecord(engine.log, runId)).length).to.equal(4);
    });

    it('stops while the log is unavailable, and the next engine takes over the runs', async () => {
      const model = held();
      let isDown = false;
      const first = await openRecovered({
        model,
        system: hasty,
        decorate: (log) =>
          changedLog(log, {
            append: (...args) => (isDown ? Promise.reject(new LogUnavailable()) : log.append(...args)),
          }),
      });
      const runId = uuid();
      await first.registry.start(runRequest(runId));
      await model.called(1);
      isDown = true;
      await first.stop();

      const second = await openRecovered();
      await allFinished(second, [runId]);
      const events = await checkRecord(second.log, runId);
      expect(factsOf(events, 'RunClaimed').map(({ reason }) => reason)).to.deep.equal(['started', 'recovered']);
    });
  });

  describe('of a run that another instance changed', () => {
    const foreign: readonly (readonly [string, readonly RunFact[]])[] = [
      ['cancelled', [{ type: 'RunFailed', data: { kind: 'cancelled', error: 'Cancelled by the user', node: null } }]],
      ['taken over', [{ type: 'RunClaimed', data: { epoch: 2, instanceId: 'another', reason: 'recovered' } }]],
    ];

    for (const [what, facts] of foreign) {
      it(`releases the slot and appends nothing after the run was ${what}, although first reads of the log fail`, async () => {
        const model = held();
        let failures = 0;
        const engine = await openRecovered({
          model,
          maxActiveRuns: 1,
          decorate: (log) =>
            changedLog(log, {
              async *readStream(stream, range) {
                if (failures > 0) {
                  failures -= 1;
                  throw new LogUnavailable();
                }
                yield* log.readStream(stream, range);
              },
            }),
        });
        const [runId, next] = [uuid(), uuid()];
        await startAll(engine, [runId, next]);
        await model.called(1);
        const head = await foldRun(engine.log, runId, nodeSystem());
        const deps = { system: nodeSystem(), instanceId: 'another' };
        const sealed = sealAppend(deps, factsAfter(head?.head ?? null, runId, facts));
        await engine.log.append(runStream(runId), sealed.events, head?.head.seq ?? 0);
        failures = 2;
        model.held[0]?.release();

        await model.called(2);
        expect(engine.registry.live(runId)).to.equal(null);
        expect(engine.registry.live(next)?.phase.status).to.equal('running');
        expect((await checkRecord(engine.log, runId)).map(({ type }) => type).slice(4)).to.deep.equal(
          facts.map(({ type }) => type),
        );
        expect(engine.faults).to.deep.equal([]);
      });
    }
  });

  onEmbeddedLog(() =>
    describe('beside a corrupt run', () => {
      const cases = [
        { what: 'one letter differs', harm: ['master_agent', 'mAster_agent'], views: 'kept' },
        { what: 'the data is no JSON', harm: ['{', '['], views: 'deleted' },
      ] as const;

      for (const { what, harm, views } of cases) {
        it(`completes the other runs when ${what} and the views are ${views}`, async () => {
          const model = held();
          const first = await openRecovered({ model });
          const [damaged, sound, begun] = [uuid(), uuid(), uuid()];
          await startAll(first, [damaged, sound]);
          await model.called(2);
          await first.queries.list({ limit: 10, offset: 0 });
          const [, , , started] = await recordOf(first.log, damaged);
          await kill(first);
          damageEvent(dir.path, started?.id ?? '', harm);
          if (views === 'deleted') rmSync(join(dir.path, 'views'), { recursive: true });

          const second = await openRecovered();
          await second.registry.start(runRequest(begun));
          await allFinished(second, [sound, begun]);
          for (const runId of [sound, begun]) await checkRecord(second.log, runId);
          expect(await rejectionOf(second.registry.cancel(damaged))).to.be.instanceOf(RunCorrupt);
          const page = await second.queries.list({ limit: 10, offset: 0 });
          expect(page.map(({ id }) => id)).to.have.members([damaged, sound, begun]);
          expect(second.registry.live(damaged)).to.equal(null);
          expect(second.faults.length).to.be.within(1, 3);
        });
      }
    }),
  );

  async function startAll(engine: TestEngine, runIds: readonly string[]): Promise<void> {
    await Promise.all(runIds.map((runId) => engine.registry.start(runRequest(runId))));
  }

  /** Ids of runs in the order of their RunStarted events. */
  async function startOrder(engine: TestEngine): Promise<readonly string[]> {
    const order: string[] = [];
    for await (const { type, stream } of engine.log.readAll(null)) {
      if (type === 'RunStarted') order.push(stream.slice('run-'.length));
    }
    return order;
  }

  /** Completed and cancelled runs. */
  async function storyOf(engine: TestEngine, topic = 'The sea'): Promise<readonly string[]> {
    const runIds = Array.from({ length: 8 }, uuid);
    const ended = runIds.slice(0, 6);
    await Promise.all(ended.map((runId) => engine.registry.start(runRequest(runId, { topic }))));
    await Promise.all(ended.slice(0, 2).map((runId) => engine.registry.cancel(runId).catch(() => null)));
    await allFinished(engine, ended);
    return ended;
  }

  async function answersOf(engine: TestEngine, runIds: readonly string[]): Promise<string> {
    const found = await Promise.all(runIds.map((runId) => engine.queries.find(runId)));
    const events = await Promise.all(runIds.map((runId) => recordOf(engine.log, runId)));
    return JSON.stringify({ list: await engine.queries.list({ limit: 100, offset: 0 }), found, events });
  }

  /** Checks that the only slot is free again. */
  async function fillsAllPlaces(engine: TestEngine, places: number): Promise<void> {
    if (places > 1) return;
    const runIds = [uuid(), uuid()];
    await startAll(engine, runIds);
    await allFinished(engine, runIds);
    expect(await startOrder(engine)).to.include.members(runIds);
  }
});

/** Tries until it does not throw. */
async function eventually<T>(look: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await look();
    } catch {
      await nextTurn();
    }
  }
}
