import { expect } from 'chai';
import { ModelFailed } from '../../../src/errors.js';
import { AppendOutcomeUnknown, RevisionConflict } from '../../../src/eventlog/errors.js';
import type { EventLog } from '../../../src/eventlog/port.js';
import { settleRequest } from '../../../src/models/billing.js';
import type { LanguageModel } from '../../../src/models/port.js';
import { RunFinished } from '../../../src/run/errors.js';
import { runStream } from '../../../src/run/events.js';
import { nodeSystem } from '../../../src/system/system.js';
import { changedLog } from '../../support/changed-log.js';
import { decision } from '../../support/god-run.js';
import { graphOf } from '../../support/given.js';
import type { TestEngine } from '../../support/open-engine.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { checkRecord } from '../../support/record-of.js';
import { rejectionOf } from '../../support/rejection.js';
import { runWhen } from '../../support/run-when.js';
import { scriptedModel } from '../../support/scripted-model.js';
import { tempDir } from '../../support/temp-dir.js';
import { untilTrue } from '../../support/until-true.js';

/**
 * A log that records the first append to a run and loses the answer. It answers the second try when `answers` resolves.
 */
function lateLog(log: EventLog, runId: string, answers: Promise<void>): EventLog {
  let tries = 0;
  return changedLog(log, {
    async append(stream, events, expected) {
      if (stream !== runStream(runId) || expected !== 'none') return await log.append(stream, events, expected);
      tries += 1;
      if (tries > 1) await answers;
      const appended = await log.append(stream, events, expected);
      if (tries === 1) throw new AppendOutcomeUnknown({ stream });
      return appended;
    },
  });
}

/** An answer of the log that a test delays. */
function heldAnswer() {
  let [ask, give] = [(): void => undefined, (): void => undefined];
  const isAskedFor = new Promise<void>((resolve) => (ask = resolve));
  const isGiven = new Promise<void>((resolve) => (give = resolve));
  const given = (): Promise<void> => {
    ask();
    return isGiven;
  };
  return { isAskedFor, given, give: () => give() };
}

describe('A start that the log acknowledges late', () => {
  const dir = tempDir();
  let engine: TestEngine;
  afterEach(() => engine.stop());
  after(() => dir.remove());

  it('leaves a run that was resumed meanwhile with its actor and its slot', async () => {
    const { uuid } = nodeSystem();
    const [runId, nextIds] = [uuid(), [uuid(), uuid()]];
    let answer = (): void => undefined;
    const answers = new Promise<void>((resolve) => (answer = resolve));
    const model = scriptedModel(() => 'hold');
    const decorate = (log: EventLog): EventLog => lateLog(log, runId, answers);
    engine = await openTestEngine({ path: dir.path, model, maxActiveRuns: 2, decorate });
    const graph = graphOf('only');
    const starting = engine.registry.start(runRequest(runId, { graph, godMode: true }));
    // The run is recorded and paused, although its client has no answer yet.
    await untilTrue(async () => (await engine.queries.find(runId))?.status === 'paused');
    await engine.registry.decidePause(runId, decision('approve'));
    await model.called(1);
    answer();
    await starting;
    expect(engine.registry.live(runId)?.phase.status).to.equal('running');
    model.held[0]?.release();
    await runWhen(engine, runId, (run) => run.phase.status === 'completed');
    await checkRecord(engine.log, runId);
    // Both slots are free again.
    for (const each of nextIds) await engine.registry.start(runRequest(each, { graph }));
    for (const each of nextIds) expect(engine.registry.live(each)).to.not.equal(null);
  });

  /** Cancels a run as soon as it is recorded, then lets the log answer its start. */
  const expectNoCall = async (late: typeof lateLog): Promise<void> => {
    const runId = nodeSystem().uuid();
    let answer = (): void => undefined;
    const answers = new Promise<void>((resolve) => (answer = resolve));
    const model = scriptedModel(() => 'hold');
    const decorate = (log: EventLog): EventLog => late(log, runId, answers);
    engine = await openTestEngine({ path: dir.path, model, decorate });
    const starting = engine.registry.start(runRequest(runId));
    await untilTrue(async () => (await engine.queries.find(runId))?.status === 'running');
    await engine.registry.cancel(runId);
    answer();
    await starting;
    expect(engine.registry.live(runId)).to.equal(null);
    expect(model.requests).to.have.length(0);
  };

  it('calls no model for a run whose cancellation was acknowledged before its start', async () => {
    const late: typeof lateLog = (log, runId, answers) =>
      changedLog(log, {
        async append(stream, events, expected) {
          const appended = await log.append(stream, events, expected);
          if (stream === runStream(runId) && expected === 'none') await answers;
          return appended;
        },
      });
    await expectNoCall(late);
  });

  it('calls no model for a run that was cancelled meanwhile', () => expectNoCall(lateLog));

  it('calls no model for a run whose cancellation is recorded, but acknowledged after its start', async () => {
    const runId = nodeSystem().uuid();
    const [start, cancel] = [heldAnswer(), heldAnswer()];
    const model = scriptedModel(() => 'hold');
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        async append(stream, events, expected) {
          const appended = await log.append(stream, events, expected);
          if (stream === runStream(runId)) await (expected === 'none' ? start : cancel).given();
          return appended;
        },
      });
    engine = await openTestEngine({ path: dir.path, model, decorate });
    const starting = engine.registry.start(runRequest(runId));
    await start.isAskedFor;
    const cancelling = engine.registry.cancel(runId);
    await cancel.isAskedFor;
    start.give();
    for (let trips = 0; trips < 20; trips += 1) await engine.log.ping();
    expect(model.requests).to.have.length(0);
    cancel.give();
    await Promise.all([starting, cancelling]);
    expect(engine.registry.live(runId)).to.equal(null);
    expect(model.requests).to.have.length(0);
  });

  it('calls no model for a run that another instance cancelled during a cancellation here', async () => {
    const runId = nodeSystem().uuid();
    const [start, cancel] = [heldAnswer(), heldAnswer()];
    const model = scriptedModel(() => 'hold');
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        async append(stream, events, expected) {
          if (events[0]?.type === 'RunFailed') {
            await cancel.given();
            const { revision } = await log.append(stream, events, expected);
            // As if another instance had appended it.
            throw new RevisionConflict({ stream, expected, actual: revision });
          }
          const appended = await log.append(stream, events, expected);
          if (expected === 'none') await start.given();
          return appended;
        },
      });
    engine = await openTestEngine({ path: dir.path, model, decorate });
    const starting = engine.registry.start(runRequest(runId));
    await start.isAskedFor;
    const cancelling = rejectionOf(engine.registry.cancel(runId));
    await cancel.isAskedFor;
    start.give();
    for (let trips = 0; trips < 20; trips += 1) await engine.log.ping();
    cancel.give();
    await starting;
    expect(await cancelling).to.be.instanceOf(RunFinished);
    expect(engine.registry.live(runId)).to.equal(null);
    expect(model.requests).to.have.length(0);
  });

  it('calls no model for a run that this instance read as cancelled before its start was acknowledged', async () => {
    const runId = nodeSystem().uuid();
    const start = heldAnswer();
    const model = scriptedModel(() => 'hold');
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        async append(stream, events, expected) {
          const appended = await log.append(stream, events, expected);
          if (expected === 'none') await start.given();
          // As if another instance had cancelled it, before the subscription delivers that.
          if (events[0]?.type === 'RunFailed')
            throw new RevisionConflict({ stream, expected, actual: appended.revision });
          return appended;
        },
      });
    engine = await openTestEngine({ path: dir.path, model, decorate });
    const starting = engine.registry.start(runRequest(runId));
    await start.isAskedFor;
    expect(await rejectionOf(engine.registry.cancel(runId))).to.be.instanceOf(RunFinished);
    start.give();
    await starting;
    expect(engine.registry.live(runId)).to.equal(null);
    expect(model.requests).to.have.length(0);
  });

  it('begins no queued model call while a cancellation is not acknowledged yet', async () => {
    const { uuid } = nodeSystem();
    const [first, second] = [uuid(), uuid()];
    let answer = (): void => undefined;
    const answers = new Promise<void>((resolve) => (answer = resolve));
    const model = scriptedModel(() => 'hold');
    let isMade = false;
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        async append(stream, events, expected) {
          const appended = await log.append(stream, events, expected);
          if (!events.some(({ type }) => type === 'RunFailed')) return appended;
          isMade = true;
          await answers;
          return appended;
        },
      });
    engine = await openTestEngine({ path: dir.path, model, maxModelCalls: 1, decorate });
    const graph = graphOf('only');
    await engine.registry.start(runRequest(first, { graph }));
    await model.called(1);
    await engine.registry.start(runRequest(second, { graph }));
    const cancelling = engine.registry.cancel(second);
    await untilTrue(() => isMade);
    model.held[0]?.release();
    await runWhen(engine, first, (run) => run.phase.status === 'completed');
    answer();
    await cancelling;
    expect(model.requests).to.have.length(1);
  });

  it('repeats no broken model request while a cancellation is not acknowledged yet', async () => {
    const runId = nodeSystem().uuid();
    const [cancel, broken] = [heldAnswer(), heldAnswer()];
    let requests = 0;
    const model: LanguageModel = {
      provider: 'breaking',
      defaultModel: 'breaking-1',
      async ask(request, { signal }) {
        requests += 1;
        await broken.given();
        const lost = new ModelFailed('The answer broke off', { kind: 'unreadable_answer', retryable: true });
        await settleRequest(request, lost, signal);
        requests += 1;
        throw lost;
      },
    };
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        async append(stream, events, expected) {
          const appended = await log.append(stream, events, expected);
          if (events.some(({ type }) => type === 'RunFailed')) await cancel.given();
          return appended;
        },
      });
    engine = await openTestEngine({ path: dir.path, model, decorate });
    await engine.registry.start(runRequest(runId, { graph: graphOf('only') }));
    await broken.isAskedFor;
    const cancelling = engine.registry.cancel(runId);
    await cancel.isAskedFor;
    broken.give();
    for (let trips = 0; trips < 20; trips += 1) await engine.log.ping();
    expect(requests).to.equal(1);
    cancel.give();
    await cancelling;
    for (let trips = 0; trips < 20; trips += 1) await engine.log.ping();
    expect(requests).to.equal(1);
  });
});
