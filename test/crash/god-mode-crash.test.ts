import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { countedCalls, countedModel } from '../support/counted-model.js';
import type { Boundary } from '../support/crash-child.js';
import { graphOf } from '../support/given.js';
import { approveAll } from '../support/god-run.js';
import { killedChild } from '../support/killed-child.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK, sample } from '../support/soak.js';

const fork = graphOf(`
  plan -> left, right
  left, right -> meet
`);

/**
 * One run with branches, every pause approved: the start, decision and result of plan, of both branches and of their
 * join.
 */
const APPENDS = [0, 1, 2, 3, 4, 5, 6, 7];

/** The model calls of both branches run concurrently, so that a kill at the second aborts both. */
const CALLS = IS_SOAK ? [0, 2, 3] : [2];
/** All crash points in a soak, otherwise one at each boundary. */
const every = (ordinal: number): readonly number[] => (IS_SOAK ? APPENDS : [ordinal]);

const BOUNDARIES: readonly (readonly [Boundary, readonly number[]])[] = [
  ['append durable', every(6)],
  ['append unsent', every(4)],
  ['append sent', every(3)],
  ['append shown', every(1)],
  ['call under way', CALLS],
];

describe('A crash of a run in God Mode', () => {
  for (const [boundary, ordinals] of sample(BOUNDARIES, 1)) {
    it(`neither loses nor repeats a pause, decision or branch when the process dies at any "${boundary}"`, async () => {
      const left = [...ordinals];
      const worker = async (): Promise<void> => {
        for (let at = left.shift(); at !== undefined; at = left.shift()) await survive(boundary, at);
      };
      await Promise.all([worker(), worker()]);
    });
  }
});

async function survive(boundary: Boundary, ordinal: number): Promise<void> {
  const dir = tempDir();
  const runId = nodeSystem().uuid();
  const plan = { path: dir.path, callsFile: join(dir.path, 'calls.txt'), maxActiveRuns: 2, runIds: [runId] };
  const end = await killedChild({ ...plan, godModeGraph: fork, crash: { boundary, ordinal, runId } });
  expect(end.signal, `${boundary} ${ordinal} is reached`).to.equal('SIGKILL');

  const engine = await openTestEngine({ ...plan, model: countedModel(plan.callsFile) });
  const before = await recordOf(engine.log, runId);
  const callsBefore = countedCalls(plan.callsFile);
  await engine.recover();
  await engine.registry.start(runRequest(runId, { topic: runId, graph: fork, godMode: true }));
  await approveAll(engine, runId);

  const events = await checkRecord(engine.log, runId);
  expect(events.slice(0, before.length)).to.deep.equal(before);
  expect(factsOf(events, 'RunPaused').map(({ nextNodes }) => nextNodes)).to.deep.equal([
    ['plan'],
    ['left', 'right'],
    ['meet'],
  ]);
  expect(factsOf(events, 'GateDecided').map(({ keyHash }) => keyHash)).to.deep.equal(['key 1', 'key 2', 'key 3']);
  expect(events.at(-1)?.type).to.equal('RunCompleted');
  expect(factsOf(events, 'RunCompleted')[0]).to.include({ iterationCount: 4 });

  const done = new Set(factsOf(before, 'NodeCompleted').map(({ step }) => step));
  const callsAfter = countedCalls(plan.callsFile);
  for (const { step, attempt, inputHash } of factsOf(events, 'NodeStarted')) {
    const [earlier, all] = [callsBefore.get(inputHash) ?? 0, callsAfter.get(inputHash) ?? 0];
    if (done.has(step)) expect(all - earlier, `calls for step ${step} after the crash`).to.equal(0);
    expect(attempt).to.be.at.most(2);
    expect(all).to.be.within(1, 2);
  }
  expect(engine.faults).to.deep.equal([]);
  await engine.stop();
  dir.remove();
}
