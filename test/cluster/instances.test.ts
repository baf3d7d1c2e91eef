import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { RunNotPaused } from '../../src/run/errors.js';
import type { Position } from '../../src/eventlog/port.js';
import type { LanguageModel } from '../../src/models/port.js';
import { decision, pausedBefore, startGodRun } from '../support/god-run.js';
import { graphOf } from '../support/given.js';
import { instantModel } from '../support/instant-model.js';
import type { OpenEngineOptions, TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import { scriptedModel } from '../support/scripted-model.js';
import { seededRandom } from '../support/seeded-random.js';
import type { LogLine, SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { PassingSystem } from '../support/passing-time.js';
import { passingSystem } from '../support/passing-time.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260103);
/** Times on a clock that the tests advance, so that a slow machine causes no false suspicion. */
const CLUSTER = { heartbeatMs: 9_000, suspectAfterMs: 60_000 };
/** Intervals of a cluster's timers: heartbeats, and checks for orphans. */
const INTERVALS = [CLUSTER.heartbeatMs, 1_000];
/** Longer than the silence that makes an instance suspected. */
const LONG_MS = CLUSTER.suspectAfterMs + CLUSTER.heartbeatMs;
const { uuid } = nodeSystem();
const line = graphOf('one -> two; two -> three');

interface Instance extends TestEngine {
  readonly system: PassingSystem;
  readonly line: LogLine;
}

describe('Instances on one log', () => {
  let dir: TempDir;
  let shared: SharedLog;
  let instances: Instance[];
  let stopped: Set<Instance>;

  beforeEach(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
    instances = [];
    stopped = new Set();
  });
  afterEach(async () => {
    for (const { line: each } of instances) each.turn('up');
    await Promise.all(instances.map((each) => each.stop()));
    await shared.close();
    dir.remove();
  });

  async function open(
    model: LanguageModel = instantModel(),
    { beatsOnly = false, ...options }: Partial<OpenEngineOptions> & { readonly beatsOnly?: boolean } = {},
  ): Promise<Instance> {
    const ownLine = shared.line();
    const path = join(dir.path, uuid());
    const openLog = () => Promise.resolve(ownLine.log);
    const system = passingSystem(INTERVALS);
    const engine = await openTestEngine({ path, model, system, cluster: CLUSTER, openLog, ...options });
    if (beatsOnly) engine.recovery.beat();
    else await engine.recover();
    const stop = (): Promise<void> => {
      stopped.add(instance);
      return engine.stop();
    };
    const instance: Instance = { ...engine, stop, system, line: ownLine };
    instances.push(instance);
    return instance;
  }

  /** Advances the time of all instances in steps, in which those with a log exchange heartbeats. */
  async function pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += CLUSTER.heartbeatMs) {
      for (const { system } of instances) system.pass(CLUSTER.heartbeatMs);
      const up = instances.filter((each) => !stopped.has(each) && each.line.isUp());
      const from = await shared.log.head();
      // The first heartbeat may have been in flight before.
      await untilTrue(async () => (await beatersSince(from, 2)) >= up.length);
      await Promise.all(up.map((each) => each.queries.list({ limit: 1, offset: 0 })));
    }
  }

  /** How many instances have sent this many heartbeats after a position. */
  async function beatersSince(from: Position | null, times: number): Promise<number> {
    const beats = new Map<string, number>();
    for await (const { stream } of shared.log.readAll(from, { categories: ['instance'] })) {
      beats.set(stream, (beats.get(stream) ?? 0) + 1);
    }
    return [...beats.values()].filter((count) => count >= times).length;
  }

  const startAt = async (instance: Instance, runs: number): Promise<readonly string[]> => {
    const runIds = Array.from({ length: runs }, uuid);
    await Promise.all(runIds.map((runId) => instance.registry.start(runRequest(runId))));
    return runIds;
  };
  const claimsOf = async (runId: string): Promise<readonly string[]> =>
    factsOf(await checkRecord(shared.log, runId), 'RunClaimed').map(({ reason }) => reason);
  const expectCompleted = async (runIds: readonly string[]): Promise<void> => {
    for (const runId of runIds) expect((await checkRecord(shared.log, runId)).at(-1)?.type).to.equal('RunCompleted');
  };

  it('take each run of a dead instance once', async () => {
    const first = await open(scriptedModel(() => 'hold'));
    const runIds = await startAt(first, 20);
    const second = await open();
    const third = await open();
    first.line.turn('silent');
    await pass(LONG_MS);
    await allFinished(second, runIds);
    await allFinished(third, runIds);
    await expectCompleted(runIds);
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started', 'recovered']);
  });

  it('take the runs of a stopping instance at once, as a handover', async () => {
    const first = await open(scriptedModel(() => 'hold'));
    const runIds = await startAt(first, 20);
    const second = await open();
    await first.stop();
    await allFinished(second, runIds);
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started', 'handover']);
  });

  it('take pending runs for which their first instance has no room', async () => {
    const first = await open(
      scriptedModel(() => 'hold'),
      { maxActiveRuns: 1 },
    );
    const runIds = await startAt(first, 6);
    // The registry holds queued runs too, so they are not offered again while they wait.
    const held = (): readonly string[] => runIds.filter((runId) => first.registry.holds(runId));
    expect(held()).to.deep.equal(runIds);
    const second = await open();
    await allFinished(second, runIds.slice(1));
    await untilTrue(() => held().length === 1);
    await expectCompleted(runIds.slice(1));
    expect(second.registry.live(runIds[0] ?? '')).to.equal(null);
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started']);
  });

  it('take no runs of a live instance, not even at their start', async () => {
    const held = scriptedModel(() => 'hold');
    const first = await open(held);
    const runIds = await startAt(first, 5);
    const second = await open();
    // Long enough for a suspicion if the heartbeats were missing.
    await pass(2 * LONG_MS);
    expect(runIds.map((runId) => second.registry.live(runId))).to.deep.equal(runIds.map(() => null));
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started']);
    expect(held.held).to.have.length(5);
  });

  it('take no runs of a process that only sends heartbeats, and that process takes none of theirs', async () => {
    const held = scriptedModel(() => 'hold');
    const waiting = await open(
      scriptedModel(() => 'hold'),
      { maxActiveRuns: 1 },
    );
    const theirs = await startAt(waiting, 3);
    const terminal = await open(held, { beatsOnly: true });
    const [runId = ''] = await startAt(terminal, 1);
    await pass(2 * LONG_MS);
    expect(await claimsOf(runId)).to.deep.equal(['started']);
    expect(terminal.registry.live(runId)?.phase.status).to.equal('running');
    expect(theirs.map((id) => terminal.registry.live(id))).to.deep.equal([null, null, null]);
  });

  it('abort the model call of a run that another instance cancels', async () => {
    const held = scriptedModel(() => 'hold');
    const first = await open(held);
    const second = await open();
    const [runId = ''] = await startAt(first, 1);
    await held.called(1);
    const aborted = new Promise<void>((resolve) => held.held[0]?.signal.addEventListener('abort', () => resolve()));
    await second.registry.cancel(runId);
    await aborted;
    expect(first.registry.live(runId)).to.equal(null);
    expect(factsOf(await checkRecord(shared.log, runId), 'RunFailed').map(({ kind }) => kind)).to.deep.equal([
      'cancelled',
    ]);
  });

  it('record one decision of a pause, whichever instances are asked, and the winner continues the run', async () => {
    const all = [await open(), await open(), await open()];
    const [first] = all;
    if (first === undefined) throw new Error('Three were opened');
    const runId = await startGodRun(first, line);
    const asked = all.flatMap((each) =>
      Array.from({ length: 33 }, () => each.registry.decidePause(runId, decision('approve'))),
    );
    const settled = await Promise.allSettled(asked);
    expect(settled.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    for (const each of settled) if (each.status === 'rejected') expect(each.reason).to.be.instanceOf(RunNotPaused);
    for (const each of all) await pausedBefore(each, runId, 'two');
    const events = await checkRecord(shared.log, runId);
    expect(factsOf(events, 'GateDecided')).to.have.length(1);
    expect(factsOf(events, 'NodeStarted')).to.have.length(1);
  });

  it('start one run for one Idempotency-Key, whichever instances are asked', async () => {
    const all = [await open(), await open(), await open()];
    const runId = uuid();
    const asked = all.flatMap((each) => Array.from({ length: 33 }, () => each.registry.start(runRequest(runId))));
    for (const requested of await Promise.all(asked)) expect(requested.runId).to.equal(runId);
    await allFinished(all[2] ?? (await open()), [runId]);
    await expectCompleted([runId]);
    expect(await claimsOf(runId)).to.deep.equal(['started']);
  });

  it('show the recorded state of a run at every instance, as soon as it is recorded', async () => {
    const held = scriptedModel(() => 'hold');
    const first = await open(held);
    const second = await open();
    // The read models of this instance receive no events.
    second.line.turn('silent');
    const reading = await open();
    const [runId = ''] = await startAt(first, 1);
    expect(await reading.queries.find(runId)).to.include({ status: 'running', activeNode: 'master_agent' });
    second.line.turn('up');
    expect((await second.queries.list({ limit: 5, offset: 0 })).map(({ id }) => id)).to.deep.equal([runId]);
    await second.registry.cancel(runId);
    expect(await reading.queries.find(runId)).to.include({ status: 'failed' });
    expect((await reading.queries.list({ limit: 5, offset: 0 }))[0]).to.include({ id: runId, status: 'failed' });
  });

  it('deliver every state of a run that another instance owns to a watcher', async () => {
    const first = await open();
    const second = await open();
    const runId = uuid();
    await first.registry.start(runRequest(runId));
    const seqs: number[] = [];
    await runWhen(second, runId, (run) => {
      seqs.push(run.head.seq);
      return run.phase.status === 'completed';
    });
    const [from = 0] = seqs;
    expect(seqs).to.deep.equal(seqs.map((_, index) => from + index));
  });

  it('abandon their runs while the log accepts no heartbeat, and continue them afterwards', async () => {
    const held = scriptedModel(() => 'hold');
    const first = await open(held);
    const runIds = await startAt(first, 3);
    await held.called(3);
    const aborted = held.held.map(
      ({ signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
    );
    first.line.turn('down');
    first.system.pass(LONG_MS);
    await Promise.all(aborted);
    expect(await first.readiness.isReady().catch(() => false)).to.equal(false);
    first.line.turn('up');
    await held.called(6);
    for (const call of [...held.held].slice(3)) call.signal.throwIfAborted();
    // This does not count as a takeover, because the run did not crash its owner.
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started', 'handover']);
  });

  it('take no runs of each other while no instance can reach the log', async () => {
    const all = [await open(), await open()];
    const models = all.map(() => scriptedModel(() => 'hold'));
    const slow = await Promise.all(models.map((model) => open(model)));
    const runIds = (await Promise.all(slow.map((each) => startAt(each, 5)))).flat();
    await Promise.all(models.map((model) => model.called(5)));
    for (const each of instances) each.line.turn('lossy');
    for (const each of instances) each.system.pass(LONG_MS);
    const calls = models.flatMap(({ held }) => held);
    await untilTrue(() => calls.every(({ signal }) => signal.aborted));
    for (const each of instances) each.line.turn('up');
    await Promise.all(models.map((model) => model.called(10)));
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started', 'handover']);
  });

  it('lose no result when an instance that was suspected comes back', async () => {
    const held = scriptedModel(() => 'hold');
    const first = await open(held);
    const runIds = await startAt(first, 10);
    await held.called(10);
    const second = await open();
    first.line.turn('silent');
    await pass(LONG_MS);
    await allFinished(second, runIds);
    first.line.turn('up');
    for (const call of [...held.held]) call.release('too late');
    await allFinished(first, runIds);
    await expectCompleted(runIds);
    for (const runId of runIds) {
      expect(first.registry.live(runId)).to.equal(null);
      expect(JSON.stringify(await checkRecord(shared.log, runId))).not.to.include('too late');
    }
  });

  it(`end every run, each step once, under random stops, hangs and lost answers (SEED=${SEED})`, async () => {
    const random = seededRandom(SEED);
    const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(random() * from.length)];
    const watching = await open(instantModel(), { maxActiveRuns: 1 });
    let alive = await Promise.all(Array.from({ length: 3 }, () => open()));
    const runIds: string[] = [];
    for (let round = 0; round < (IS_SOAK ? 60 : 4); round += 1) {
      const starter = pick(alive);
      if (starter !== undefined) runIds.push(...(await startAt(starter, 10)));
      const victim = pick(alive);
      const mood = pick(['stop', 'silent', 'lossy', 'down'] as const);
      if (victim !== undefined && mood === 'stop') {
        await victim.stop();
        alive = [...alive.filter((each) => each !== victim), await open()];
      } else if (victim !== undefined && mood !== undefined && mood !== 'stop') {
        victim.line.turn(mood);
        await pass(random() * 2 * CLUSTER.suspectAfterMs);
        victim.line.turn('up');
      }
    }
    await allFinished(watching, runIds);
    for (const runId of runIds) {
      const events = await checkRecord(shared.log, runId);
      const results = factsOf(events, 'RunCompleted').map(({ usage: _, ...result }) => result);
      expect(results).to.deep.equal([{ finalDraft: 'Draft 4', criticScore: 8, iterationCount: 3 }]);
    }
  });
});
