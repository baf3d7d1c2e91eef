import { expect } from 'chai';
import { RunFinished, RunNotPaused } from '../../../src/run/errors.js';
import { ServiceStopping } from '../../../src/errors.js';
import { openPauseOf } from '../../../src/run/state.js';
import { graphOf } from '../../support/given.js';
import { decision, pausedBefore, startGodRun } from '../../support/god-run.js';
import { instantModel } from '../../support/instant-model.js';
import type { TestEngine } from '../../support/open-engine.js';
import { openTestEngine } from '../../support/open-engine.js';
import { checkRecord, factsOf } from '../../support/record-of.js';
import { rejectionOf } from '../../support/rejection.js';
import { allFinished, runWhen } from '../../support/run-when.js';
import { scriptedModel } from '../../support/scripted-model.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { IS_SOAK } from '../../support/soak.js';

const line = graphOf('one -> two; two -> three');
const fork = graphOf(`
  plan -> left, right
  left, right -> meet
`);

describe('Concurrent decisions', () => {
  let dir: TempDir;
  let engine: TestEngine;

  beforeEach(async () => {
    dir = tempDir();
    engine = await openTestEngine({ path: dir.path, model: instantModel() });
  });
  afterEach(async () => {
    await engine.stop();
    expect(engine.faults).to.deep.equal([]);
    dir.remove();
  });
  const reopen = async (options: Partial<Parameters<typeof openTestEngine>[0]> = {}): Promise<void> => {
    await engine.stop();
    engine = await openTestEngine({ path: dir.path, model: instantModel(), ...options });
    await engine.recover();
  };

  it('on one pause: one is recorded, and no other decides the next pause', async () => {
    const runId = await startGodRun(engine, fork);
    const deciding = Array.from({ length: 100 }, () => engine.registry.decidePause(runId, decision('approve')));
    const settled = await Promise.allSettled(deciding);
    expect(settled.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    for (const each of settled) if (each.status === 'rejected') expect(each.reason).to.be.instanceOf(RunNotPaused);
    await pausedBefore(engine, runId, 'left', 'right');
    const events = await checkRecord(engine.log, runId);
    expect(factsOf(events, 'GateDecided')).to.have.length(1);
    expect(factsOf(events, 'NodeStarted')).to.have.length(1);
  });

  it('as approval and cancel at once: the run ends cancelled, whichever is first', async () => {
    for (let round = 0; round < 20; round += 1) {
      const runId = await startGodRun(engine, line);
      const cancelFirst = round % 2 === 0 ? engine.registry.cancel(runId) : null;
      const approving = engine.registry.decidePause(runId, decision('approve'));
      const cancelling = cancelFirst ?? engine.registry.cancel(runId);
      const [approved, cancelled] = await Promise.allSettled([approving, cancelling]);
      expect(cancelled.status).to.equal('fulfilled');
      if (approved.status === 'rejected') expect(approved.reason).to.be.instanceOf(RunNotPaused);
      const events = await checkRecord(engine.log, runId);
      expect(factsOf(events, 'RunFailed').map(({ kind }) => kind)).to.deep.equal(['cancelled']);
      expect(engine.registry.live(runId)).to.equal(null);
    }
  });

  it('as rejection and cancel at once: exactly one ends the run', async () => {
    for (let round = 0; round < 10; round += 1) {
      const runId = await startGodRun(engine, line);
      const both = [engine.registry.decidePause(runId, decision('reject')), engine.registry.cancel(runId)];
      const settled = await Promise.allSettled<unknown>(both);
      expect(settled.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
      const lost = settled.find((each) => each.status === 'rejected');
      expect(lost?.reason).to.satisfy(
        (error: unknown) => error instanceof RunNotPaused || error instanceof RunFinished,
      );
      expect(factsOf(await checkRecord(engine.log, runId), 'RunFailed')).to.have.length(1);
    }
  });

  it('as approval and stop at once: the run is still paused, or continues after the next start', async () => {
    for (let round = 0; round < (IS_SOAK ? 6 : 2); round += 1) {
      const runIds = await Promise.all(Array.from({ length: 5 }, () => startGodRun(engine, line)));
      const deciding = runIds.map((runId) => engine.registry.decidePause(runId, decision('approve')));
      for (let turn = 0; turn < round; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      const stopping = engine.stop();
      const settled = await Promise.allSettled(deciding);
      await stopping;
      await reopen();
      for (const [index, runId] of runIds.entries()) {
        const outcome = settled[index];
        if (outcome?.status === 'rejected') expect(outcome.reason).to.be.instanceOf(ServiceStopping);
        if (outcome?.status === 'fulfilled') await pausedBefore(engine, runId, 'two');
        else await runWhen(engine, runId, (run) => openPauseOf(run) !== null);
        await checkRecord(engine.log, runId);
      }
    }
  });

  it('is refused while the service stops', async () => {
    const runId = await startGodRun(engine, line);
    await engine.registry.stop();
    expect(await rejectionOf(engine.registry.decidePause(runId, decision('approve')))).to.be.instanceOf(
      ServiceStopping,
    );
  });

  it('leaves paused runs paused at a start, and claims none', async () => {
    const runIds = await Promise.all(Array.from({ length: 20 }, () => startGodRun(engine, line)));
    await reopen();
    for (const runId of runIds) {
      await pausedBefore(engine, runId, 'one');
      expect(factsOf(await checkRecord(engine.log, runId), 'RunClaimed')).to.have.length(1);
      expect(engine.registry.live(runId)).to.equal(null);
    }
  });

  it('resumes a run past the limit of active runs, and frees its slot at the end', async () => {
    const model = scriptedModel(() => 'hold');
    await reopen({ model, maxActiveRuns: 1 });
    const [first, second] = [await startGodRun(engine, line), await startGodRun(engine, line)];
    for (const runId of [first, second]) await engine.registry.decidePause(runId, decision('approve'));
    await model.called(2);
    for (const call of [...model.held]) call.release();
    for (const runId of [first, second]) await pausedBefore(engine, runId, 'two');
    // A slot is free again, so a new run starts at once.
    const third = await startGodRun(engine, line);
    await pausedBefore(engine, third, 'one');
  });

  it('aborts the call in flight when a resumed run is cancelled', async () => {
    const model = scriptedModel(() => 'hold');
    await reopen({ model });
    const runId = await startGodRun(engine, line);
    await engine.registry.decidePause(runId, decision('approve'));
    await model.called(1);
    await engine.registry.cancel(runId);
    expect(model.held[0]?.signal.aborted).to.equal(true);
    await allFinished(engine, [runId]);
  });

  it('keeps no paused run in memory', async () => {
    const runIds = await Promise.all(Array.from({ length: 50 }, () => startGodRun(engine, line)));
    for (const runId of runIds) await pausedBefore(engine, runId, 'one');
    await engine.queries.list({ limit: 1, offset: 0 });
    expect(engine.states.size).to.equal(0);
  });

  it('shows paused runs as paused in the history and to a poll', async () => {
    const runId = await startGodRun(engine, line);
    await engine.registry.decidePause(runId, decision('approve'));
    await pausedBefore(engine, runId, 'two');
    const shown = { id: runId, status: 'paused', executionMode: 'god-mode', activeNode: 'two', completedAt: null };
    const session = { nextNodes: ['two'], currentDraft: 'Draft 1' };
    expect((await engine.queries.list({ limit: 1, offset: 0 }))[0]).to.deep.include({ ...shown, session });
    expect(await engine.queries.find(runId)).to.deep.include({ ...shown, session });
  });
});
