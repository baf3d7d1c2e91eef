import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import type { RunBudget } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { countedCalls, countedModel } from '../support/counted-model.js';
import type { Boundary } from '../support/crash-child.js';
import { killedChild } from '../support/killed-child.js';
import { openTestEngine } from '../support/open-engine.js';
import { checkRecord } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { tempDir } from '../support/temp-dir.js';
import { sample } from '../support/soak.js';

/** Tokens of each call to the instant model. */
const TOKENS = 20;
const AMPLE: RunBudget = { tokens: 1_000_000, usd: null, onExceeded: 'fail' };

/**
 * Points around the second question to the first critic: the append that reserves it is the third of the run, and its call
 * is the third.
 */
const POINTS: readonly (readonly [Boundary, number])[] = [
  ...(['append durable', 'append unsent', 'append sent', 'append shown'] as const).map(
    (boundary) => [boundary, 2] as const,
  ),
  ['adopted, call unmade', 2],
  ['call under way', 2],
];

describe('A crash between two calls of an attempt', () => {
  for (const [boundary, ordinal] of sample(POINTS, 1)) {
    it(`loses nothing of what a run has spent, at "${boundary}"`, async () => {
      const { events, budget, calls } = await afterCrash({ boundary, ordinal }, AMPLE);
      const { spent, cutOff } = settledCalls(events);
      expect(cutOff, 'calls that were cut off').to.equal(1);
      expect(budget.spentTokens).to.equal(spent);
      expect(budget.spentTokens).to.be.at.least(calls * TOKENS);
      expect(events.at(-1)?.type).to.equal('RunCompleted');
    });
  }

  it('does not repeat the calls above the budget', async () => {
    const tight: RunBudget = { ...AMPLE, tokens: 15_000 };
    const { events, budget } = await afterCrash({ boundary: 'call under way', ordinal: 2 }, tight);
    expect(events.at(-1)?.data).to.include({ kind: 'budget_exceeded' });
    expect(budget.spentTokens).to.be.at.most(15_000);
  });
});

/** Kills a process with a run at a point. This process then ends the run. */
async function afterCrash(crash: { readonly boundary: Boundary; readonly ordinal: number }, budget: RunBudget) {
  const dir = tempDir();
  const runId = nodeSystem().uuid();
  const callsFile = join(dir.path, 'calls.txt');
  const plan = { path: dir.path, callsFile, maxActiveRuns: 1, runIds: [runId], budget };
  const end = await killedChild({ ...plan, crash: { ...crash, runId } });
  expect(end.signal).to.equal('SIGKILL');
  const engine = await openTestEngine({ ...plan, model: countedModel(callsFile, { areCriticsVague: true }) });
  await engine.recover();
  await allFinished(engine, [runId]);
  const events = await checkRecord(engine.log, runId);
  const run = await engine.queries.find(runId);
  await engine.stop();
  const calls = [...countedCalls(callsFile).values()].reduce((sum, each) => sum + each, 0);
  dir.remove();
  if (run?.budget === undefined) throw new Error('The run has no budget');
  return { events, budget: run.budget, calls };
}

/** What the calls of a run cost by its record: each one's usage, or the reservation of a call without a recorded end. */
function settledCalls(events: readonly RunEvent[]): { readonly spent: number; readonly cutOff: number } {
  const open = new Map<number, number>();
  let spent = 0;
  let cutOff = 0;
  for (const { type, data } of events) {
    if (type !== 'NodeStarted' && type !== 'CallReserved' && type !== 'NodeCompleted') continue;
    const reserved = open.get(data.step);
    open.delete(data.step);
    if (reserved !== undefined && type === 'NodeStarted') {
      spent += reserved;
      cutOff += 1;
    } else if (reserved !== undefined) {
      spent += TOKENS;
    }
    if (type !== 'NodeCompleted') open.set(data.step, data.reserved?.tokens ?? 0);
  }
  return { spent, cutOff };
}
