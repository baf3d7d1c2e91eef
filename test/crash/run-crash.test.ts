import { expect } from 'chai';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { nodeSystem } from '../../src/system/system.js';
import type { RunEvent } from '../../src/run/events.js';
import { countedCalls, countedModel } from '../support/counted-model.js';
import type { Boundary, CrashPlan } from '../support/crash-child.js';
import { killedChild } from '../support/killed-child.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK, sample, soakIt } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260101);

/** One run of the fixed graph with the instant model: three rounds and the writer. */
const APPENDS = 8;
const CALLS = 7;
const FINAL_DRAFT = 'Draft 4';

/** Each boundary with the number of times that one run passes it. */
const BOUNDARIES: readonly (readonly [Boundary, number])[] = [
  ['append durable', APPENDS],
  ['append unsent', APPENDS],
  ['call under way', CALLS],
  ['append sent', APPENDS],
  ['append shown', APPENDS],
  ['adopted, call unmade', CALLS],
];

/** Concurrent processes. */
const AT_ONCE = 2;
/** The number of crashes in a row: in a soak as many as every run survives (limits.maxTakeovers). */
const MAX_CRASHES = IS_SOAK ? 5 : 2;
const CHAINS = IS_SOAK ? 60 : 1;
const ROUNDS = IS_SOAK ? 5 : 1;
/** The tested occurrences of a boundary: all in a soak, otherwise one. */
const STRIDE = IS_SOAK ? 1 : APPENDS;

const { uuid } = nodeSystem();

describe(`Crash (SEED=${SEED})`, () => {
  for (const [at, [boundary, times]] of sample(BOUNDARIES, 2).entries()) {
    it(`neither loses nor repeats an event when the process dies at any "${boundary}" of a run`, async () => {
      const all = Array.from({ length: times * ROUNDS }, (_, index) => index % times);
      const ordinals = all.filter((ordinal) => ordinal % STRIDE === at % STRIDE);
      await inParallel(ordinals, (ordinal) => surviveOne(boundary, ordinal));
    });
  }

  soakIt(`completes every accepted run after up to ${MAX_CRASHES} crashes in a row`, async () => {
    const random = seededRandom(SEED);
    const seeds = Array.from({ length: CHAINS }, () => Math.floor(random() * 2 ** 32));
    await inParallel(seeds, surviveMany);
  });
});

/** Crashes a process with three runs, of which one waits. This process then resumes the runs. */
async function surviveOne(boundary: Boundary, ordinal: number): Promise<void> {
  const house = crashHouse(3);
  const end = await killedChild({ ...house.plan, crash: { boundary, ordinal, runId: house.target } });
  expect(end.signal, `${boundary} ${ordinal} is reached`).to.equal('SIGKILL');

  const callsBefore = countedCalls(house.plan.callsFile);
  const engine = await openTestEngine({ ...house.plan, model: countedModel(house.plan.callsFile) });
  const before = await recordsOf(engine, house.plan.runIds);
  for (const runId of end.accepted) expect(before.get(runId), `accepted run ${runId}`).not.to.be.empty;
  await engine.recover();
  await Promise.all(house.plan.runIds.map((runId) => engine.registry.start(runRequest(runId, { topic: runId }))));
  await allFinished(engine, house.plan.runIds);

  const callsAfter = countedCalls(house.plan.callsFile);
  for (const [runId, earlier] of before) {
    const events = await checkRecord(engine.log, runId);
    expectCompleted(events);
    expectWentOn(earlier, events);
    expectNoCallRepeated({ earlier, events, callsBefore, callsAfter });
  }
  expectEveryCallRecorded([...(await recordsOf(engine, house.plan.runIds)).values()], callsAfter);
  await leave(engine, house);
}

/** Crashes processes one after the other at random points. This process then resumes the runs. */
async function surviveMany(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = (bound: number): number => Math.floor(random() * bound);
  const house = crashHouse(5);
  const { runIds, callsFile } = house.plan;
  const accepted = new Set<string>();
  for (let crashes = 0; crashes < MAX_CRASHES; crashes += 1) {
    const [boundary, times] = BOUNDARIES[pick(BOUNDARIES.length)] ?? ['append durable', APPENDS];
    const crash = { boundary, ordinal: pick(times), runId: runIds[pick(runIds.length)] ?? house.target };
    const end = await killedChild({ ...house.plan, crash });
    expect([end.signal, end.code], `seed ${seed}`).to.satisfy(
      (is: unknown) => isDeepStrictEqual(is, ['SIGKILL', null]) || isDeepStrictEqual(is, [null, 0]),
    );
    end.accepted.forEach((runId) => accepted.add(runId));
  }

  const engine = await openTestEngine({ ...house.plan, model: countedModel(callsFile) });
  for (const runId of accepted) expect(await recordOf(engine.log, runId), `accepted run ${runId}`).not.to.be.empty;
  await engine.recover();
  await Promise.all(runIds.map((runId) => engine.registry.start(runRequest(runId, { topic: runId }))));
  await allFinished(engine, runIds);
  const records = await recordsOf(engine, runIds);
  for (const runId of runIds) expectCompleted(await checkRecord(engine.log, runId));
  expectEveryCallRecorded([...records.values()], countedCalls(callsFile));
  await leave(engine, house);
}

function crashHouse(runs: number): { plan: Omit<CrashPlan, 'crash'>; target: string; remove: () => void } {
  const dir = tempDir();
  const target = uuid();
  const runIds = [target, ...Array.from({ length: runs - 1 }, uuid)];
  const callsFile = join(dir.path, 'calls.txt');
  return { plan: { path: dir.path, callsFile, maxActiveRuns: runs - 1, runIds }, target, remove: () => dir.remove() };
}

async function leave(engine: TestEngine, house: { remove: () => void }): Promise<void> {
  expect(engine.faults).to.deep.equal([]);
  await engine.stop();
  house.remove();
}

type Records = ReadonlyMap<string, readonly RunEvent[]>;

async function recordsOf(engine: TestEngine, runIds: readonly string[]): Promise<Records> {
  const records = runIds.map(async (runId) => [runId, await recordOf(engine.log, runId)] as const);
  return new Map(await Promise.all(records));
}

/** Checks that the result equals that of an undisturbed run. */
function expectCompleted(events: readonly RunEvent[]): void {
  // Repeated calls only show in the usage.
  const results = factsOf(events, 'RunCompleted').map(({ usage: _, ...result }) => result);
  expect(results).to.deep.equal([{ finalDraft: FINAL_DRAFT, criticScore: 8, iterationCount: 3 }]);
  expect(factsOf(events, 'NodeCompleted').map(({ step }) => step)).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
}

/**
 * Checks that recorded events are kept and that an unfinished run was claimed again, with both attempts of its open
 * step.
 */
function expectWentOn(earlier: readonly RunEvent[], events: readonly RunEvent[]): void {
  expect(events.slice(0, earlier.length)).to.deep.equal(earlier);
  const later = events.slice(earlier.length);
  const wasRunning = earlier.some(({ type }) => type === 'RunStarted') && later.length > 0;
  const reasons = factsOf(later, 'RunClaimed').map(({ reason }) => reason);
  if (later.length === 0) expect(reasons).to.deep.equal([]);
  else expect(reasons).to.deep.equal([wasRunning ? 'recovered' : 'started']);

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
  for (const { step, inputHash } of factsOf(events, 'NodeStarted')) {
    const more = (callsAfter.get(inputHash) ?? 0) - (callsBefore.get(inputHash) ?? 0);
    expect(more, `calls for step ${step} after the crash`).to.equal(done.has(step) ? 0 : 1);
  }
}

/** Checks that every call has a recorded attempt, and that no attempt has two calls. */
function expectEveryCallRecorded(records: readonly (readonly RunEvent[])[], calls: Calls): void {
  const attempts = new Map<string, number>();
  for (const events of records) {
    for (const { inputHash, attempt } of factsOf(events, 'NodeStarted')) attempts.set(inputHash, attempt);
  }
  for (const [inputHash, count] of calls) expect(count).to.be.within(1, attempts.get(inputHash) ?? 0);
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
