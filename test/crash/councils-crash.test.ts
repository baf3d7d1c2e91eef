import { expect } from 'chai';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EventLog } from '../../src/eventlog/port.js';
import type { RunEvent } from '../../src/run/events.js';
import { isFinished } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import type { NestedPlan } from '../support/nested-councils.js';
import { NESTED, NESTED_CALLS, USAGE, callsIn, nestedModel } from '../support/nested-councils.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import { IS_SOAK } from '../support/soak.js';
import { tempDir } from '../support/temp-dir.js';

const CHILD = fileURLToPath(new URL('../support/nested-child.js', import.meta.url));
const FAKE = fileURLToPath(new URL('../support/fake-event-store-process.js', import.meta.url));
const { uuid } = nodeSystem();

/** Appends of a run that nothing interrupts, to its ten runs in all. */
const APPENDS = 36;
const BOUNDARIES = ['append durable', 'append unsent', 'append sent', 'call'] as const;
/** Without a soak, one point of each kind. */
const SHORT: readonly NestedPlan['crash'][] = [
  { boundary: 'append durable', ordinal: 14 },
  { boundary: 'append unsent', ordinal: 30 },
  { boundary: 'append sent', ordinal: 23 },
  { boundary: 'call', ordinal: 6 },
];
const POINTS = IS_SOAK
  ? BOUNDARIES.flatMap((boundary) =>
      Array.from({ length: boundary === 'call' ? NESTED_CALLS : APPENDS }, (_, ordinal) => ({ boundary, ordinal })),
    )
  : SHORT;

describe('A council of 3 × 2 councils', () => {
  let server: Child;
  const dir = tempDir();
  before(async () => {
    server = startChild(process.execPath, [FAKE, join(dir.path, 'server.sqlite')]);
    await server.waitFor((lines) => lines.some((line) => line.startsWith('listening on ')));
  });
  after(async () => {
    await server.kill();
    dir.remove();
  });

  for (const crash of POINTS) {
    const name = `${crash.boundary} ${crash.ordinal}`;
    const plan = (kind: string): NestedPlan => {
      const path = join(dir.path, `${kind} ${name}`);
      // Few may be active, so that runs wait for each other's slots.
      return { path, callsFile: `${path}.calls`, runId: uuid(), maxActiveRuns: 3, crash };
    };
    const onServer = (kind: string) => {
      const url = server.lines[0]?.replace('listening on ', '') ?? '';
      return { url, prefix: `${kind}-${name.replace(/ /g, '-')}` };
    };

    it(`repeats only the calls without a recorded answer after a kill at "${name}"`, () => surviveAlone(plan('file')));

    // Without a soak, a log that several instances share is tried at one point.
    if (!IS_SOAK && crash !== SHORT[0]) continue;

    it(`does so on EventStoreDB after a kill at "${name}"`, () =>
      surviveAlone({ ...plan('server'), eventStore: onServer('one') }));

    it(`is continued by another instance after a kill at "${name}"`, async () => {
      const cluster = { heartbeatMs: 200, suspectAfterMs: 1_500 };
      const shared = { ...plan('shared'), eventStore: onServer('three'), cluster };
      const { callsFile, runId } = shared;
      const open = async (at: string): Promise<TestEngine> => {
        const engine = await openTestEngine({
          ...shared,
          path: `${shared.path}.${at}`,
          model: nestedModel(callsFile),
        });
        await engine.recover();
        return engine;
      };
      const [one, two] = [await open('one'), await open('two')];
      // The others may take so many of its runs that it never reaches the point.
      expect(await killed(shared)).to.be.oneOf(['SIGKILL', null]);
      const earlier = await familyOf(one.log, runId);
      if (earlier.size > 0) {
        await runWhen(two, runId, isFinished);
        await expectWhole(one, { runId, earlier, before: null, callsFile });
      }
      for (const each of [one, two]) {
        expect(each.faults).to.deep.equal([]);
        await each.stop();
      }
    });
  }
});

async function killed(plan: NestedPlan): Promise<string | null> {
  const { signal, stderr } = await startChild(process.execPath, [CHILD, JSON.stringify(plan)]).exit;
  expect(stderr).to.equal('');
  return signal;
}

async function surviveAlone(plan: NestedPlan): Promise<void> {
  const { callsFile, runId } = plan;
  expect(await killed(plan)).to.equal('SIGKILL');
  const before = callsIn(callsFile);
  const engine = await openTestEngine({ ...plan, model: nestedModel(callsFile) });
  const earlier = await familyOf(engine.log, runId);
  await engine.recover();
  await engine.registry.start(runRequest(runId, { topic: 'T', graph: NESTED }));
  await allFinished(engine, [runId]);
  await expectWhole(engine, { runId, earlier, before, callsFile });
  expect(engine.faults).to.deep.equal([]);
  await engine.stop();
}

type Family = ReadonlyMap<string, readonly RunEvent[]>;

/** The records of a run and of all that its councils have started. */
async function familyOf(log: EventLog, runId: string): Promise<Family> {
  const records = new Map<string, readonly RunEvent[]>();
  const add = async (id: string): Promise<void> => {
    const events = await recordOf(log, id);
    if (events.length > 0) records.set(id, events);
    for (const { child } of factsOf(events, 'ChildStarted')) await add(child);
  };
  await add(runId);
  return records;
}

interface Survived {
  readonly runId: string;
  readonly earlier: Family;
  /** The calls before the crash, or null if others made calls after it. */
  readonly before: ReadonlyMap<string, number> | null;
  readonly callsFile: string;
}

async function expectWhole(engine: TestEngine, survived: Survived): Promise<void> {
  const { runId, earlier } = survived;
  const family = await familyOf(engine.log, runId);
  expect(family.size).to.equal(1 + 3 + 6);
  for (const [id, events] of family) {
    await checkRecord(engine.log, id);
    expect(events.slice(0, earlier.get(id)?.length)).to.deep.equal(earlier.get(id) ?? events);
    expect(events.at(-1)?.type, id).to.equal('RunCompleted');
    for (const { child, headHash } of factsOf(events, 'ChildEnded'))
      expect(family.get(child)?.at(-1)?.hash).to.equal(headHash);
    expect((await engine.audits.verify(id))?.firstDifference).to.equal(null);
  }
  expectNoCallRepeated(family, survived);
  expectSums(family, runId);
}

/** No call is made again whose answer was recorded. */
function expectNoCallRepeated(family: Family, { earlier, before, callsFile }: Survived): void {
  const done = new Set([...earlier.values()].filter((events) => answersIn(events) > 0).map(topicOf));
  for (const [call, count] of callsIn(callsFile)) {
    const topic = call.slice(call.indexOf(' ') + 1);
    const events = [...family.values()].find((each) => topicOf(each) === topic) ?? [];
    expect(count, call).to.be.at.most(attemptsIn(events));
    // Other instances make calls meanwhile.
    if (before !== null) expect(count - (before.get(call) ?? 0), call).to.equal(done.has(topic) ? 0 : 1);
  }
}

/** The sums are those of the recorded answers, whichever instance made the calls. */
function expectSums(family: Family, runId: string): void {
  const all = [...family.values()];
  expect(all.map(answersIn).reduce((sum, each) => sum + each)).to.equal(NESTED_CALLS);
  const usage = factsOf(family.get(runId) ?? [], 'RunCompleted')[0]?.usage;
  expect(usage).to.include({
    calls: all.map(attemptsIn).reduce((sum, each) => sum + each),
    inputTokens: NESTED_CALLS * USAGE.inputTokens,
    outputTokens: NESTED_CALLS * USAGE.outputTokens,
    costUsd: NESTED_CALLS * USAGE.costUsd,
  });
}

function topicOf(events: readonly RunEvent[]): string {
  return factsOf(events, 'RunRequested')[0]?.inputTopic ?? '';
}

/** Attempts of a run that ask a model, and those that are answered. */
function attemptsIn(events: readonly RunEvent[]): number {
  return factsOf(events, 'NodeStarted').filter(({ model }) => model !== '').length;
}

function answersIn(events: readonly RunEvent[]): number {
  return factsOf(events, 'NodeCompleted').filter(({ model }) => model !== undefined).length;
}
