import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { TransitionRefused } from '../../src/run/chart/machine.js';
import { runStream } from '../../src/run/events.js';
import { sealAppend } from '../../src/eventsourcing/aggregate.js';
import { factsAfter, foldRun } from '../../src/run/stream.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { flatState } from '../support/whole-run.js';

describe('A live run that reads an event which its chart does not allow', () => {
  it('reports a fault, records nothing more and keeps the process alive', async () => {
    const system = nodeSystem();
    const dir = tempDir();
    const model = scriptedModel(() => 'hold');
    const engine = await openTestEngine({ path: dir.path, model });
    const runId = system.uuid();
    await engine.registry.start(runRequest(runId));
    await model.called(1);
    const run = await foldRun(engine.log, runId, system);
    if (run === null) throw new Error('The run is not recorded');
    const deps = { system, instanceId: 'another' };
    const { events } = sealAppend(deps, factsAfter(run.head, runId, [{ type: 'RunStarted', data: { epoch: 1 } }]));
    await engine.log.append(runStream(runId), events, run.head.seq);
    model.held[0]?.release('Too late');
    await untilTrue(() => engine.faults.length > 0);
    expect(engine.faults[0]).to.have.property('err').that.is.instanceOf(TransitionRefused);
    expect(flatState(await foldRun(engine.log, runId, system))).to.include({
      seq: run.head.seq + 1,
      status: 'running',
    });
    // XState would throw an error of its actor as an uncaught exception in a later turn.
    await engine.stop();
    dir.remove();
  });
});
