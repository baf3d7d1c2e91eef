import { expect } from 'chai';
import { join } from 'node:path';
import type { Approvals } from '../../src/generated/schemas.js';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { graphOf } from '../support/given.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { runWhen } from '../support/run-when.js';
import { openPauseOf } from '../../src/run/state.js';
import type { LogLine, SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const RUNS = IS_SOAK ? 1_000 : 45;
const HOUR = 3_600_000;
const { uuid } = nodeSystem();
const RULES: readonly Approvals[] = [
  { deadline: { after_ms: HOUR, then: 'reject' } },
  { deadline: { after_ms: HOUR, then: 'approve' } },
  { by: ['ann'], deadline: { after_ms: HOUR, then: { escalate: ['eve'] } } },
];

/** The real system, with a wall clock that is ahead by this time. */
function aheadBy(ms: number): System {
  const system = nodeSystem();
  return { ...system, now: () => new Date(Date.parse(system.now()) + ms).toISOString() };
}

describe(`${RUNS} deadlines that fall due over three instances`, () => {
  let dir: TempDir;
  let shared: SharedLog;
  const opened: { readonly engine: TestEngine; readonly line: LogLine }[] = [];

  const open = async (system: System): Promise<TestEngine> => {
    const line = shared.line();
    const engine = await openTestEngine({
      path: join(dir.path, uuid()),
      model: instantModel(),
      system,
      maxActiveRuns: 10_000,
      cluster: { heartbeatMs: 1_000, suspectAfterMs: 600_000 },
      openLog: () => Promise.resolve(line.log),
    });
    opened.push({ engine, line });
    return engine;
  };

  before(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
  });
  after(async () => {
    for (const { line } of opened) line.turn('up');
    await Promise.all(opened.map(({ engine }) => engine.stop()));
    await shared.close();
    dir.remove();
  });

  const settled = async (): Promise<number> => {
    let count = 0;
    for await (const { type } of shared.log.readAll(null, { categories: ['run'] })) {
      if (type === 'GateDecided' || type === 'PauseEscalated') count += 1;
    }
    return count;
  };

  soakIt('are each applied exactly once, although one of the instances hangs meanwhile', async () => {
    const first = await open(nodeSystem());
    const runIds = Array.from({ length: RUNS }, uuid);
    for (const [index, runId] of runIds.entries()) {
      const graph = { ...graphOf('one'), approvals: RULES[index % RULES.length] ?? {} };
      await first.registry.start(runRequest(runId, { graph, godMode: true }));
    }
    await first.stop();

    const [hanging] = await Promise.all([open(aheadBy(2 * HOUR)), open(aheadBy(2 * HOUR)), open(aheadBy(2 * HOUR))]);
    const line = opened.find(({ engine }) => engine === hanging)?.line;
    const starting = opened.slice(1).map(({ engine }) => engine.recover());
    await untilTrue(async () => (await settled()) >= RUNS / 9);
    line?.turn('silent');
    await untilTrue(async () => (await settled()) >= RUNS);
    line?.turn('up');
    await Promise.all(starting);
    for (const { engine } of opened.slice(1)) await engine.queries.list({ limit: 1, offset: 0 });

    for (const [index, runId] of runIds.entries()) {
      const run = await runWhen(hanging, runId, (each) => each.phase.status !== 'paused' || index % RULES.length === 2);
      const events = await checkRecord(shared.log, runId);
      const [decisions, escalations] = [factsOf(events, 'GateDecided'), factsOf(events, 'PauseEscalated')];
      expect([decisions.length, escalations.length]).to.deep.equal(index % RULES.length === 2 ? [0, 1] : [1, 0]);
      for (const each of decisions) expect(each).to.include({ by: 'deadline', actor: null });
      if (escalations.length > 0) expect(openPauseOf(run)?.escalatedTo).to.deep.equal(['eve']);
    }
  });
});
