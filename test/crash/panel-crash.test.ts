import { expect } from 'chai';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeSystem } from '../../src/system/system.js';
import type { RunEvent } from '../../src/run/events.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { callOfModel, countedCalls, countedModel } from '../support/counted-model.js';
import type { Boundary, CrashPlan } from '../support/crash-child.js';
import { killedChild } from '../support/killed-child.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine } from '../support/open-engine.js';
import { expectOneOwner } from '../support/owner-check.js';
import { FOUR_MINDS_WITH_OUTPUT } from '../support/panel-graph.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import { isFinished } from '../../src/run/state.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const FAKE = fileURLToPath(new URL('../support/fake-event-store-process.js', import.meta.url));

/**
 * Appends of a run: its start, one for each member's answer and ranking, and the end. The third answer's also holds the
 * quorum; the last answer's and the last ranking's also hold the close and the next starts. The analysis and the final output
 * have one each.
 */
const APPENDS = 11;
const CALLS = 10;

/** Each boundary with the number of times that a run passes it. */
const BOUNDARIES: readonly (readonly [Boundary, number])[] = [
  ['append unsent', APPENDS],
  ['append sent', APPENDS],
  ['append durable', APPENDS],
  ['append shown', APPENDS],
  ['adopted, call unmade', CALLS],
  ['call under way', CALLS],
];

/** Without a soak: after the third answer. */
const SHORT: readonly (readonly [Boundary, number])[] = [['append durable', 3]];
const POINTS = IS_SOAK
  ? BOUNDARIES.flatMap(([boundary, times]) => Array.from({ length: times }, (_, at) => [boundary, at] as const))
  : SHORT;
/** For three instances: after each append; without a soak after the third answer. */
const SHARED_POINTS = IS_SOAK ? Array.from({ length: APPENDS }, (_, at) => at) : [3];

describe('A panel of four with a rank, a judge, a long material and an output', () => {
  for (const [boundary, ordinal] of POINTS) {
    it(`repeats only the calls without a recorded answer after a crash at "${boundary}" ${ordinal}`, async () => {
      const dir = tempDir();
      const [runId, plan] = planIn(dir.path);
      const end = await killedChild({ ...plan, crash: { boundary, ordinal, runId } });
      expect(end.signal).to.equal('SIGKILL');
      const before = countedCalls(plan.callsFile);
      const engine = await openTestEngine({ ...plan, model: countedModel(plan.callsFile, { namesModels: true }) });
      const earlier = await recordOf(engine.log, runId);
      await engine.recover();
      if (earlier.length === 0) {
        // Its start was not acknowledged.
        expect(end.accepted).to.deep.equal([]);
        expect(ordinal).to.equal(0);
      } else {
        await allFinished(engine, [runId]);
        await expectEnd(engine, { runId, earlier, before, after: countedCalls(plan.callsFile) });
      }
      expect(engine.faults).to.deep.equal([]);
      await engine.stop();
      dir.remove();
    });
  }
});

describe('A panel of four with a rank and a judge, on three instances', () => {
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

  for (const ordinal of SHARED_POINTS) {
    soakIt(`repeats only the calls without a recorded answer when its owner dies after append ${ordinal}`, async () => {
      const url = server.lines[0]?.replace('listening on ', '') ?? '';
      const cluster = { heartbeatMs: 200, suspectAfterMs: 1_500 };
      const shared = { eventStore: { url, prefix: `panel${ordinal}` }, cluster };
      const [runId, plan] = planIn(join(dir.path, `run${ordinal}`));
      const callsFile = join(dir.path, `calls${ordinal}.txt`);
      const open = async (name: string): Promise<TestEngine> => {
        const model = countedModel(callsFile, { namesModels: true });
        const engine = await openTestEngine({ ...shared, path: join(dir.path, `${name}${ordinal}`), model });
        await engine.recover();
        return engine;
      };
      const [one, two] = [await open('one'), await open('two')];
      const crash = { boundary: 'append durable' as const, ordinal, runId };
      const end = await killedChild({ ...plan, callsFile, shared, crash });
      expect(end.signal).to.equal('SIGKILL');
      const before = countedCalls(callsFile);
      const earlier = await recordOf(one.log, runId);
      await runWhen(two, runId, isFinished);
      await expectEnd(one, { runId, earlier, before, after: countedCalls(callsFile) });
      await expectOneOwner(one.log, runId);
      for (const each of [one, two]) {
        expect(each.faults).to.deep.equal([]);
        await each.stop();
      }
    });
  }
});

function planIn(path: string): readonly [string, Omit<CrashPlan, 'crash'>] {
  const runId = nodeSystem().uuid();
  return [
    runId,
    {
      path,
      callsFile: join(path, 'calls.txt'),
      maxActiveRuns: 10,
      runIds: [runId],
      panelGraph: FOUR_MINDS_WITH_OUTPUT,
    },
  ];
}

interface Crashed {
  readonly runId: string;
  /** The record at the crash. */
  readonly earlier: readonly RunEvent[];
  /** Calls before and after it. */
  readonly before: ReadonlyMap<string, number>;
  readonly after: ReadonlyMap<string, number>;
}

async function expectEnd(engine: TestEngine, { runId, earlier, before, after }: Crashed): Promise<void> {
  const events = await checkRecord(engine.log, runId);
  expect(events.slice(0, earlier.length)).to.deep.equal(earlier);
  expect(events.at(-1)?.type).to.equal('RunCompleted');
  expect(
    factsOf(events, 'PanelClosed').map(({ node, panelStep, answered }) => [node, panelStep, answered.length]),
  ).to.deep.equal([
    ['ask', 1, 4],
    ['rank', 5, 4],
  ]);
  expect(factsOf(events, 'QuorumReached')).to.have.length(1);
  const done = new Set(factsOf(earlier, 'NodeCompleted').map(({ step }) => step));
  for (const { step, model, inputHash } of factsOf(events, 'NodeStarted')) {
    const call = callOfModel(model, inputHash);
    const more = (after.get(call) ?? 0) - (before.get(call) ?? 0);
    expect(more, `calls of step ${step} after the crash`).to.equal(done.has(step) ? 0 : 1);
  }
  const steps = factsOf(events, 'NodeCompleted').map(({ step }) => step);
  for (const step of steps) {
    const prompt = await engine.audits.prompt(runId, { step });
    expect(prompt, `prompt of step ${step}`).to.include({ verified: true });
  }
  const [completed] = factsOf(events, 'RunCompleted');
  expect(completed?.finalOutput).to.have.property('draft');
  expect(completed?.usage?.calls).to.equal(factsOf(events, 'NodeStarted').length);
  expect((await engine.audits.verify(runId))?.firstDifference).to.equal(null);
}
