import { expect } from 'chai';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { RunEvent } from '../../src/run/events.js';
import { nodeSystem } from '../../src/system/system.js';
import { callOf, countedCalls, countedModel } from '../support/counted-model.js';
import type { Boundary, CrashPlan } from '../support/crash-child.js';
import type { CrashedCouncil } from '../support/crashed-councils.js';
import { crashedRequest } from '../support/crashed-councils.js';
import { approveAll } from '../support/god-run.js';
import { killedChild } from '../support/killed-child.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK, soakIt } from '../support/soak.js';
import { tempDir } from '../support/temp-dir.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
/** The number of crashes in a row that every run survives (limits.maxTakeovers). */
const MAX_CRASHES = 5;
const CHAINS = 60;
const ROUNDS = 5;
/** Tokens of each call to the instant model. */
const TOKENS = 20;

interface Crashed {
  readonly council: CrashedCouncil;
  /** Runs of the process; one of several waits for a slot. */
  readonly runs: number;
  /** How often a run that nothing interrupts appends, and calls the model. */
  readonly appends: number;
  readonly calls: number;
  /** The points without a soak. */
  readonly short: readonly (readonly [Boundary, number])[];
  readonly expectEnd: (events: readonly RunEvent[], engine: TestEngine, runId: string) => Promise<void> | void;
}

const COUNCILS: readonly Crashed[] = [
  {
    council: 'fixed',
    runs: 3,
    appends: 8,
    calls: 7,
    short: [
      ['append durable', 0],
      ['append unsent', 1],
    ],
    expectEnd: expectFinalDraft,
  },
  {
    council: 'God Mode',
    runs: 1,
    // Start, decision and result of plan, of both branches and of their join. Both branches call at once.
    appends: 8,
    calls: 4,
    short: [['append durable', 6]],
    expectEnd(events) {
      const pauses = factsOf(events, 'RunPaused').map(({ nextNodes }) => nextNodes);
      expect(pauses).to.deep.equal([['plan'], ['left', 'right'], ['meet']]);
      const keys = factsOf(events, 'GateDecided').map(({ keyHash }) => keyHash);
      expect(keys).to.deep.equal(['key 1', 'key 2', 'key 3']);
      expect(factsOf(events, 'RunCompleted')[0]).to.include({ iterationCount: 4 });
    },
  },
  {
    council: 'panel',
    runs: 1,
    // The start, each member's answer and ranking, the analysis and the output. The third answer's also holds the quorum.
    appends: 11,
    calls: 10,
    short: [['append durable', 3]],
    expectEnd: expectPanel,
  },
  {
    council: 'two calls',
    runs: 1,
    // A critic makes two calls; the append that reserves the second one is the third of the run.
    appends: 11,
    calls: 10,
    short: [['append durable', 2]],
    expectEnd: expectSpent,
  },
];

describe(`A process that dies (SEED=${SEED})`, () => {
  for (const crashed of COUNCILS) {
    for (const [boundary, ordinals] of pointsOf(crashed)) {
      it(`at "${boundary}" neither loses nor repeats an event or a recorded call: ${crashed.council}`, () =>
        inParallel(ordinals, (ordinal) => surviveOne(crashed, boundary, ordinal)));
    }
  }

  soakIt(`completes every accepted run after up to ${MAX_CRASHES} crashes in a row`, async () => {
    const random = seededRandom(SEED);
    const seeds = Array.from({ length: CHAINS }, () => Math.floor(random() * 2 ** 32));
    await inParallel(seeds, surviveMany);
  });
});

/** Each boundary with the ordinals at which the process dies: all in a soak, some of them more than once. */
function pointsOf({ appends, calls, runs, short }: Crashed): readonly (readonly [Boundary, readonly number[]])[] {
  if (!IS_SOAK) return short.map(([boundary, ordinal]) => [boundary, [ordinal]]);
  const rounds = runs > 1 ? ROUNDS : 1;
  return boundariesOf({ appends, calls }).map(([boundary, times]) => [
    boundary,
    Array.from({ length: times * rounds }, (_, index) => index % times),
  ]);
}

function boundariesOf({ appends, calls }: Pick<Crashed, 'appends' | 'calls'>) {
  return [
    ['append unsent', appends],
    ['append sent', appends],
    ['append durable', appends],
    ['append shown', appends],
    ['adopted, call unmade', calls],
    ['call under way', calls],
  ] as const;
}

/** Crashes a process at one point of a run. This process then resumes its runs. */
async function surviveOne(crashed: Crashed, boundary: Boundary, ordinal: number): Promise<void> {
  const { council, runs, expectEnd } = crashed;
  const { plan, target, remove } = crashFolder(council, runs);
  const end = await killedChild({ ...plan, crash: { boundary, ordinal, runId: target } });
  expect(end.signal, `${boundary} ${ordinal} is reached`).to.equal('SIGKILL');

  const callsBefore = countedCalls(plan.callsFile);
  const engine = await openTestEngine({ ...plan, model: modelOf(plan) });
  const before = await recordsOf(engine, plan.runIds);
  for (const runId of end.accepted) expect(before.get(runId), `accepted run ${runId}`).not.to.be.empty;
  await resume(engine, plan);

  const callsAfter = countedCalls(plan.callsFile);
  for (const [runId, earlier] of before) {
    const events = await checkRecord(engine.log, runId);
    expectWentOn(earlier, events);
    expectNoCallRepeated({ earlier, events, callsBefore, callsAfter });
    expect(events.at(-1)?.type).to.equal('RunCompleted');
    await expectEnd(events, engine, runId);
  }
  const records = [...(await recordsOf(engine, plan.runIds)).values()];
  // The second call of an attempt has a prompt that NodeStarted does not hold.
  if (council !== 'two calls') expectEveryCallRecorded(records, callsAfter);
  expect(engine.faults).to.deep.equal([]);
  await engine.stop();
  remove();
}

/** Crashes processes one after the other at random points. This process then resumes the runs. */
async function surviveMany(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = (bound: number): number => Math.floor(random() * bound);
  const { plan, target, remove } = crashFolder('fixed', 5);
  const boundaries = boundariesOf({ appends: 8, calls: 7 });
  const accepted = new Set<string>();
  for (let crashes = 0; crashes < MAX_CRASHES; crashes += 1) {
    const [boundary, times] = boundaries[pick(boundaries.length)] ?? ['append durable', 8];
    const crash = { boundary, ordinal: pick(times), runId: plan.runIds[pick(plan.runIds.length)] ?? target };
    const end = await killedChild({ ...plan, crash });
    expect([end.signal, end.code], `seed ${seed}`).to.satisfy(
      (is: unknown) => isDeepStrictEqual(is, ['SIGKILL', null]) || isDeepStrictEqual(is, [null, 0]),
    );
    end.accepted.forEach((runId) => accepted.add(runId));
  }

  const engine = await openTestEngine({ ...plan, model: modelOf(plan) });
  for (const runId of accepted) expect(await recordOf(engine.log, runId), `accepted run ${runId}`).not.to.be.empty;
  await resume(engine, plan);
  for (const runId of plan.runIds) expectFinalDraft(await checkRecord(engine.log, runId));
  expectEveryCallRecorded([...(await recordsOf(engine, plan.runIds)).values()], countedCalls(plan.callsFile));
  expect(engine.faults).to.deep.equal([]);
  await engine.stop();
  remove();
}

type Plan = Omit<CrashPlan, 'crash'>;

function crashFolder(council: CrashedCouncil, runs: number): { plan: Plan; target: string; remove: () => void } {
  const { uuid } = nodeSystem();
  const { path, remove } = tempDir();
  const target = uuid();
  const runIds = [target, ...Array.from({ length: runs - 1 }, uuid)];
  const plan = { path, council, runIds, callsFile: join(path, 'calls.txt'), maxActiveRuns: Math.max(1, runs - 1) };
  return { plan, target, remove };
}

function modelOf({ callsFile, council }: Plan) {
  return countedModel(callsFile, { areCriticsVague: council === 'two calls' });
}

/** Resumes the runs of a process that died, starts those that it had not accepted, and waits for the end of all. */
async function resume(engine: TestEngine, { council, runIds }: Plan): Promise<void> {
  await engine.recover();
  await Promise.all(runIds.map((runId) => engine.registry.start(crashedRequest(council, runId))));
  if (council === 'God Mode') await Promise.all(runIds.map((runId) => approveAll(engine, runId)));
  await allFinished(engine, runIds);
}

type Records = ReadonlyMap<string, readonly RunEvent[]>;

async function recordsOf(engine: TestEngine, runIds: readonly string[]): Promise<Records> {
  const records = runIds.map(async (runId) => [runId, await recordOf(engine.log, runId)] as const);
  return new Map(await Promise.all(records));
}

/**
 * Checks that recorded events are kept and that an unfinished run was claimed again, with both attempts of its open
 * step.
 */
function expectWentOn(earlier: readonly RunEvent[], events: readonly RunEvent[]): void {
  expect(events.slice(0, earlier.length)).to.deep.equal(earlier);
  const later = events.slice(earlier.length);
  const wasRunning = earlier.some(({ type }) => type === 'RunStarted');
  const reasons = factsOf(later, 'RunClaimed').map(({ reason }) => reason);
  const isPausing = factsOf(events, 'RunPaused').length > 0;
  if (later.length === 0) expect(reasons).to.deep.equal([]);
  else if (!isPausing) expect(reasons).to.deep.equal([wasRunning ? 'recovered' : 'started']);

  const done = new Set(factsOf(earlier, 'NodeCompleted').map(({ step }) => step));
  for (const { step, attempt } of factsOf(earlier, 'NodeStarted')) {
    const again = factsOf(later, 'NodeStarted').filter((started) => started.step === step);
    expect(again.map((started) => started.attempt)).to.deep.equal(done.has(step) ? [] : [attempt + 1]);
  }
}

type Calls = ReadonlyMap<string, number>;

/** Checks that recorded steps were not called again, and an open step was called again once. */
function expectNoCallRepeated(run: {
  earlier: readonly RunEvent[];
  events: readonly RunEvent[];
  callsBefore: Calls;
  callsAfter: Calls;
}): void {
  const { earlier, events, callsBefore, callsAfter } = run;
  const done = new Set(factsOf(earlier, 'NodeCompleted').map(({ step }) => step));
  for (const started of factsOf(events, 'NodeStarted')) {
    const call = callOf(started);
    const more = (callsAfter.get(call) ?? 0) - (callsBefore.get(call) ?? 0);
    expect(more, `calls for step ${started.step} after the crash`).to.equal(done.has(started.step) ? 0 : 1);
  }
}

/** Checks that every call has a recorded attempt, and that no attempt has two calls. */
function expectEveryCallRecorded(records: readonly (readonly RunEvent[])[], calls: Calls): void {
  const attempts = new Map<string, number>();
  for (const events of records) {
    for (const started of factsOf(events, 'NodeStarted')) attempts.set(callOf(started), started.attempt);
  }
  for (const [call, count] of calls) expect(count).to.be.within(1, attempts.get(call) ?? 0);
}

/** The result of the fixed graph is that of an undisturbed run. */
function expectFinalDraft(events: readonly RunEvent[]): void {
  // Repeated calls only show in the usage.
  const results = factsOf(events, 'RunCompleted').map(({ usage: _, ...result }) => result);
  expect(results).to.deep.equal([{ finalDraft: 'Draft 4', criticScore: 8, iterationCount: 3 }]);
  expect(factsOf(events, 'NodeCompleted').map(({ step }) => step)).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
}

async function expectPanel(events: readonly RunEvent[], engine: TestEngine, runId: string): Promise<void> {
  const closed = factsOf(events, 'PanelClosed').map(({ node, panelStep, answered }) => [
    node,
    panelStep,
    answered.length,
  ]);
  expect(closed).to.deep.equal([
    ['ask', 1, 4],
    ['rank', 5, 4],
  ]);
  expect(factsOf(events, 'QuorumReached')).to.have.length(1);
  for (const { step } of factsOf(events, 'NodeCompleted'))
    expect(await engine.audits.prompt(runId, { step }), `prompt of step ${step}`).to.include({ verified: true });
  const [completed] = factsOf(events, 'RunCompleted');
  expect(completed?.finalOutput).to.have.property('draft');
  expect(completed?.usage?.calls).to.equal(factsOf(events, 'NodeStarted').length);
  expect((await engine.audits.verify(runId))?.firstDifference).to.equal(null);
}

/** The run has spent what its calls cost by its record: their usage, or the reservation of a call without an end. */
async function expectSpent(events: readonly RunEvent[], engine: TestEngine, runId: string): Promise<void> {
  const open = new Map<number, number>();
  let [spent, calls] = [0, 0];
  for (const { type, data } of events) {
    if (type !== 'NodeStarted' && type !== 'CallReserved' && type !== 'NodeCompleted') continue;
    const reserved = open.get(data.step);
    open.delete(data.step);
    if (reserved !== undefined) spent += type === 'NodeStarted' ? reserved : TOKENS;
    if (type === 'NodeCompleted') continue;
    open.set(data.step, data.reserved?.tokens ?? 0);
    calls += 1;
  }
  const budget = (await engine.queries.find(runId))?.budget;
  expect(budget?.spentTokens)
    .to.equal(spent)
    .and.to.be.at.least(calls * TOKENS);
}

/** Concurrent processes. */
const AT_ONCE = 2;

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
