import { expect } from 'chai';
import { join } from 'node:path';
import type { Caller } from '../../src/keys/caller.js';
import { RunNotPaused } from '../../src/run/errors.js';
import { nodeSystem } from '../../src/system/system.js';
import { graphOf } from '../support/given.js';
import { decision, pausedBefore } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import type { SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const KEYS: readonly Caller[] = ['ann', 'ben', 'eve', 'kim', 'zoe'].map((actor) => ({
  actor,
  scopes: new Set(['approve']),
}));

describe('A quorum of two under a hundred decisions at once', () => {
  let dir: TempDir;
  let shared: SharedLog;
  let instances: readonly TestEngine[];

  before(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
    const open = (name: string): Promise<TestEngine> =>
      openTestEngine({
        path: join(dir.path, name),
        model: instantModel(),
        cluster: { heartbeatMs: 60_000, suspectAfterMs: 600_000 },
        openLog: () => Promise.resolve(shared.line().log),
      });
    instances = [await open('one'), await open('two')];
    for (const each of instances) await each.recover();
  });
  after(async () => {
    for (const each of instances) await each.stop();
    await shared.close();
    dir.remove();
  });

  it('by five keys at two instances counts exactly two votes and resumes the run once', async () => {
    const [first] = instances;
    if (first === undefined) throw new Error('No instance');
    const runId = nodeSystem().uuid();
    const graph = { ...graphOf('one -> two'), approvals: { quorum: 2 } };
    await first.registry.start(runRequest(runId, { graph, godMode: true }));
    await pausedBefore(first, runId, 'one');
    const deciding = Array.from({ length: 100 }, (_, index) => {
      const [engine, caller] = [instances[index % 2] ?? first, KEYS[index % 5]];
      return engine.registry.decidePause(runId, decision('approve', caller === undefined ? {} : { caller }));
    });
    const settled = await Promise.allSettled(deciding);
    for (const each of settled) if (each.status === 'rejected') expect(each.reason).to.be.instanceOf(RunNotPaused);
    const statuses = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value.status] : []));
    expect(statuses.filter((status) => status === 'running')).to.have.lengthOf(1);
    await pausedBefore(first, runId, 'two');
    const events = await checkRecord(shared.log, runId);
    const [vote, ...more] = factsOf(events, 'VoteCast');
    const [decided, ...others] = factsOf(events, 'GateDecided');
    expect([more, others]).to.deep.equal([[], []]);
    expect(new Set([vote?.actor, decided?.actor])).to.have.property('size', 2);
    expect(factsOf(events, 'RunResumed')).to.have.lengthOf(1);
  });
});
