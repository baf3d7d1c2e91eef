import { expect } from 'chai';
import type { Approvals } from '../../../src/generated/schemas.js';
import type { DuePause } from '../../../src/run/runs/deadlines.js';
import { Deadlines } from '../../../src/run/runs/deadlines.js';
import type { RunState } from '../../../src/run/state.js';
import { nodeSystem } from '../../../src/system/system.js';
import { begun, graphOf } from '../../support/given.js';
import { pausedBefore, startGodRun } from '../../support/god-run.js';
import { manualSystem } from '../../support/manual-system.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { passingSystem } from '../../support/passing-time.js';
import { checkRecord, factsOf } from '../../support/record-of.js';
import { scriptedModel } from '../../support/scripted-model.js';
import { tempDir } from '../../support/temp-dir.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const LINE = graphOf('one -> two');

/** A run that was paused at the beginning of 2026. */
function paused(runId: string, afterMs: number | null): RunState {
  const approvals: Approvals = afterMs === null ? {} : { deadline: { after_ms: afterMs, then: 'reject' } };
  return begun(runRequest(runId, { graph: { ...LINE, approvals }, godMode: true })).run;
}

/** The metadata of an event of this instance, and of an event of another. */
const OWN = { metadata: { instanceId: 'me' } };
const FOREIGN = { metadata: { instanceId: 'other' } };

const at = (ms: number): string => new Date(Date.parse('2026-01-01T00:00:00.000Z') + ms).toISOString();
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('Deadlines of pauses', () => {
  const system = manualSystem();
  let stored: DuePause[] = [];
  let passed: string[] = [];
  let asked = 0;
  const over = async (runId: string): Promise<null> => {
    passed.push(runId);
    return null;
  };
  let pass: (runId: string) => Promise<string | null> = over;
  let faults: unknown[] = [];
  let deadlines: Deadlines;

  beforeEach(() => {
    system.setNow(at(0));
    [stored, passed, faults, asked] = [[], [], [], 0];
    pass = over;
    deadlines = new Deadlines({
      system,
      spreadMs: 250,
      instanceId: 'me',
      history: {
        async deadlines(max) {
          asked += 1;
          const gone = new Set(passed);
          return stored.filter(({ runId }) => !gone.has(runId)).slice(0, max);
        },
      },
      registry: { applyDeadline: (runId) => pass(runId) },
      corruptRuns: { has: () => false },
      logger: { error: (fields) => void faults.push(fields) },
    });
  });
  afterEach(async () => {
    await deadlines.stop();
    expect(system.timers()).to.equal(0);
  });
  /** Advances the time in steps, and lets the callbacks finish. */
  const pass10 = async (ms: number): Promise<void> => {
    for (let step = 0; step < 10; step += 1) {
      system.advance(ms / 10);
      await turn();
    }
  };

  it('are applied after they have passed and a random wait, not before', async () => {
    deadlines.onRunFolded(OWN, paused('soon', MINUTE));
    deadlines.onRunFolded(OWN, paused('never', null));
    await pass10(MINUTE - 1);
    expect(passed).to.deep.equal([]);
    await pass10(251);
    expect(passed).to.deep.equal(['soon']);
    await pass10(MINUTE);
    expect(passed).to.deep.equal(['soon']);
    expect(system.timers()).to.equal(0);
  });

  it('are kept if they are further away than the longest timer', async () => {
    deadlines.onRunFolded(OWN, paused('later', 40 * DAY));
    for (let day = 0; day < 40; day += 1) system.advance(DAY - 10);
    await turn();
    expect(passed).to.deep.equal([]);
    system.advance(400);
    await pass10(2 * MINUTE);
    expect(passed).to.deep.equal(['later']);
  });

  it('are applied within a minute after the clock is set forward', async () => {
    deadlines.onRunFolded(OWN, paused('later', DAY));
    system.setNow(at(DAY + MINUTE));
    await pass10(MINUTE);
    expect(passed).to.deep.equal(['later']);
  });

  it('are forgotten once the pause is decided', async () => {
    const run = paused('decided', MINUTE);
    deadlines.onRunFolded(OWN, run);
    deadlines.onRunFolded(OWN, { ...run, phase: { status: 'running', resumedBy: 'approve' } });
    await pass10(2 * MINUTE);
    expect(passed).to.deep.equal([]);
  });

  it('of other instances and of stored runs are applied from the start on', async () => {
    deadlines.onRunFolded(FOREIGN, paused('others', MINUTE));
    await pass10(2 * MINUTE);
    expect(passed).to.deep.equal([]);
    stored = [{ runId: 'stored', deadline: at(MINUTE) }];
    deadlines.start();
    await pass10(MINUTE);
    deadlines.onRunFolded(FOREIGN, paused('others', MINUTE));
    await pass10(MINUTE);
    expect(passed).to.deep.equal(['stored', 'others']);
  });

  it('are tried again after a failure, or if no slot is free', async () => {
    const answers: (() => Promise<string | null>)[] = [
      () => Promise.reject(new Error('The log is away')),
      () => Promise.resolve(at(MINUTE)),
    ];
    pass = (runId) => {
      passed.push(runId);
      return answers.shift()?.() ?? Promise.resolve(null);
    };
    deadlines.onRunFolded(OWN, paused('again', MINUTE));
    await pass10(2 * MINUTE);
    expect(passed).to.deep.equal(['again', 'again', 'again']);
    expect(faults).to.have.lengthOf(1);
  });

  it('are bounded in memory: later ones are read again when they come near', async () => {
    const many = 25_000;
    stored = Array.from({ length: many }, (_, index) => ({ runId: `r${index}`, deadline: at(MINUTE + index) }));
    deadlines.start();
    await pass10(3 * MINUTE);
    expect(new Set(passed).size).to.equal(many);
    expect(passed).to.have.lengthOf(many);
    expect(asked).to.be.within(3, 12);
  });
});

describe('A run that its deadline resumes', () => {
  it('waits for a free slot', async () => {
    const dir = tempDir();
    // Checks again soon.
    const system = passingSystem([MINUTE, 1_000]);
    let aheadMs = 0;
    const now = (): string => new Date(Date.parse(nodeSystem().now()) + aheadMs).toISOString();
    const model = scriptedModel(() => 'hold');
    const engine = await openTestEngine({ path: dir.path, model, system: { ...system, now }, maxActiveRuns: 1 });
    const approvals: Approvals = { deadline: { after_ms: DAY, then: 'approve' } };
    const waiting = await startGodRun(engine, { ...LINE, approvals });
    const busy = nodeSystem().uuid();
    await engine.registry.start(runRequest(busy));
    await model.called(1);
    aheadMs = 2 * DAY;
    // The deadline has been tried, so the next check comes after it.
    expect(await engine.registry.applyDeadline(waiting)).to.be.a('string');
    await pausedBefore(engine, waiting, 'one');
    await engine.registry.cancel(busy);
    await model.called(2);
    const [decided] = factsOf(await checkRecord(engine.log, waiting), 'GateDecided');
    expect(decided).to.include({ by: 'deadline', action: 'approve' });
    await engine.stop();
    expect(engine.faults).to.deep.equal([]);
    dir.remove();
  });
});
