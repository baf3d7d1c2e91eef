import { expect } from 'chai';
import type { EventLog } from '../../../src/eventlog/port.js';
import { nodeSystem } from '../../../src/system/system.js';
import { changedLog } from '../../support/changed-log.js';
import { heldModel } from '../../support/instant-model.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { allFinished } from '../../support/run-when.js';
import { tempDir } from '../../support/temp-dir.js';

const RUNS = 400;

describe(`${RUNS} runs whose models answer at once`, () => {
  it('record at most 256 answers at a time, so that the others keep no decided state in memory', async () => {
    const dir = tempDir();
    let [recording, most, calls] = [0, 0, 0];
    let [answer, allCalled] = [(): void => undefined, (): void => undefined];
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const areAllCalled = new Promise<void>((resolve) => (allCalled = resolve));
    const counting = (log: EventLog): EventLog =>
      changedLog(log, {
        async append(stream, events, expected) {
          const isAnswer = events[0]?.type === 'NodeCompleted';
          if (isAnswer) most = Math.max(most, (recording += 1));
          const appended = await log.append(stream, events, expected);
          if (isAnswer) recording -= 1;
          return appended;
        },
      });
    const model = heldModel(answered);
    const ask: typeof model.ask = (request, call) => {
      calls += 1;
      if (calls === RUNS) allCalled();
      return model.ask(request, call);
    };
    const engine = await openTestEngine({
      path: dir.path,
      model: { ...model, ask },
      maxModelCalls: 2 * RUNS,
      decorate: counting,
    });
    const runIds = Array.from({ length: RUNS }, () => nodeSystem().uuid());
    await Promise.all(runIds.map((runId) => engine.registry.start(runRequest(runId))));
    await areAllCalled;
    answer();
    await allFinished(engine, runIds);
    expect(most).to.equal(256);
    expect(engine.faults).to.deep.equal([]);
    await engine.stop();
    dir.remove();
  });
});
