import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import type { EventLog, Position } from '../../src/eventlog/port.js';
import { runIdOf } from '../../src/run/events.js';
import { changedLog } from '../support/changed-log.js';
import { graphOf } from '../support/given.js';
import type { OpenEngineOptions, TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { passingSystem } from '../support/passing-time.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const CLUSTER = { heartbeatMs: 9_000, suspectAfterMs: 60_000 };
const CHECK_MS = 1_000;
/** Shortest wait of an instance before it takes a run whose turn is another's. */
const OUT_OF_TURN_MS = 250;
const { uuid } = nodeSystem();

interface Instance extends TestEngine {
  readonly subscription: Subscription;
  /** Number of complete reads by this instance, by run. */
  readonly reads: Map<string, number>;
  /** Checks for orphans since the start. */
  checks(): number;
}

/** The subscription of one instance, which a test can delay. */
interface Subscription {
  /** Delivers events up to a position only. */
  holdAt(position: Position | null): void;
  release(): void;
}

describe('An instance whose subscription lags behind the log', () => {
  let dir: TempDir;
  let shared: SharedLog;
  let instances: Instance[];

  beforeEach(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
    instances = [];
  });
  afterEach(async () => {
    for (const { subscription } of instances) subscription.release();
    await Promise.all(instances.map((each) => each.stop()));
    await shared.close();
    dir.remove();
  });

  async function open(model: ScriptedModel, options: Partial<OpenEngineOptions> = {}): Promise<Instance> {
    const reads = new Map<string, number>();
    const { log, subscription } = delayed(shared.log, (runId) => reads.set(runId, (reads.get(runId) ?? 0) + 1));
    let checks = 0;
    const time = passingSystem([CLUSTER.heartbeatMs, CHECK_MS, OUT_OF_TURN_MS]);
    const system = {
      ...time,
      // Every random wait is the shortest.
      random: () => 0,
      after(ms: number, callback: () => void) {
        if (ms === CHECK_MS) checks += 1;
        return time.after(ms, callback);
      },
    };
    const path = join(dir.path, uuid());
    const engine = await openTestEngine({
      path,
      model,
      system,
      cluster: CLUSTER,
      openLog: () => Promise.resolve(log),
      ...options,
    });
    await engine.recover();
    const instance = { ...engine, subscription, reads, checks: () => checks };
    instances.push(instance);
    return instance;
  }

  const startAt = async (instance: Instance, runs: number): Promise<readonly string[]> => {
    const runIds = Array.from({ length: runs }, uuid);
    for (const runId of runIds)
      await instance.registry.start(runRequest(runId, { graph: graphOf('only', { timeoutMs: 60_000 }) }));
    return runIds;
  };
  const claimsOf = async (runId: string): Promise<readonly string[]> =>
    factsOf(await checkRecord(shared.log, runId), 'RunClaimed').map(({ reason }) => reason);
  const untilRecorded = (type: string, runIds: readonly string[]): Promise<void> =>
    untilTrue(async () => {
      const found = new Set<string | null>();
      for await (const event of shared.log.readAll(null)) if (event.type === type) found.add(runIdOf(event.stream));
      return runIds.every((runId) => found.has(runId));
    });
  const afterChecks = async (instance: Instance, count: number): Promise<void> => {
    const from = instance.checks();
    await untilTrue(() => instance.checks() >= from + count);
  };
  const readsOf = ({ reads }: Instance, runIds: readonly string[]): readonly number[] =>
    runIds.map((runId) => reads.get(runId) ?? 0);

  it('reads each run once if it takes and ends the run before its subscription delivers the events', async () => {
    const model = holdsFirst();
    const instance = await open(model, { maxActiveRuns: 1 });
    const runIds = await startAt(instance, 8);
    instance.subscription.holdAt(await shared.log.head());
    model.held[0]?.release();
    await untilRecorded('RunCompleted', runIds);
    await afterChecks(instance, 10);
    expect(readsOf(instance, runIds)).to.deep.equal([0, 1, 1, 1, 1, 1, 1, 1]);
    instance.subscription.release();
    await allFinished(instance, runIds);
    for (const runId of runIds) expect(await claimsOf(runId)).to.deep.equal(['started']);
  });

  it('does not read a cancelled run again before its subscription delivers the cancellation', async () => {
    const model = holdsFirst();
    const instance = await open(model, { maxActiveRuns: 1 });
    const [first = '', ...waiting] = await startAt(instance, 4);
    instance.subscription.holdAt(await shared.log.head());
    for (const runId of waiting) await instance.registry.cancel(runId);
    instance.reads.clear();
    model.held[0]?.release();
    await untilRecorded('RunCompleted', [first]);
    await afterChecks(instance, 10);
    expect(readsOf(instance, waiting)).to.deep.equal([0, 0, 0]);
  });

  it('reads a run of another instance once, and takes it when its owner releases it', async () => {
    const model = scriptedModel((_, index) => (index < 2 ? 'hold' : { text: 'Draft' }));
    const other = await open(model, { maxActiveRuns: 1 });
    const instance = await open(scriptedModel(() => ({ text: 'Draft' })));
    instance.subscription.holdAt(await shared.log.head());
    const [first = '', ...waiting] = await startAt(other, 2);
    const whenPending = await shared.log.head();
    model.held[0]?.release();
    await model.called(2);
    await untilRecorded('RunCompleted', [first]);
    instance.subscription.holdAt(whenPending);
    await untilTrue(() => readsOf(instance, waiting).every((reads) => reads > 0));
    await afterChecks(instance, 10);
    expect(readsOf(instance, waiting)).to.deep.equal([1]);
    await other.stop();
    instance.subscription.release();
    await allFinished(instance, waiting);
    expect(await claimsOf(waiting[0] ?? '')).to.deep.equal(['started', 'handover']);
  });
});

/** A model that does not answer the first call and answers the others at once. */
function holdsFirst(): ScriptedModel {
  return scriptedModel((_, index) => (index === 0 ? 'hold' : { text: 'Draft' }));
}

/** A log whose subscriptions can be delayed. It reports complete reads of runs. */
function delayed(
  log: EventLog,
  onRead: (runId: string) => void,
): { readonly log: EventLog; readonly subscription: Subscription } {
  let isHeld = (_: Position): boolean => false;
  let moved = (): void => undefined;
  const moveTo = (next: typeof isHeld): void => {
    isHeld = next;
    moved();
  };
  const subscription: Subscription = {
    holdAt: (limit) => moveTo((position) => limit === null || position > limit),
    release: () => moveTo(() => false),
  };
  return {
    subscription,
    log: changedLog(log, {
      readStream(stream, range) {
        const runId = runIdOf(stream);
        if (runId !== null && range?.direction !== 'backwards') onRead(runId);
        return log.readStream(stream, range);
      },
      async *subscribe(after, following) {
        for await (const followed of log.subscribe(after, following)) {
          const position = followed.kind === 'event' ? followed.event.position : null;
          while (position !== null && isHeld(position) && !following.signal.aborted)
            await new Promise<void>((resolve) => {
              moved = resolve;
              following.signal.addEventListener('abort', () => resolve());
            });
          yield followed;
        }
      },
      close: () => Promise.resolve(),
    }),
  };
}
