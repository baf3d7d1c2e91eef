/** A process that runs a council of councils and kills itself at a chosen append or call. Takes a NestedPlan as its argument. */
import { runIdOf } from '../../src/run/events.js';
import { deathAt, mortalLog } from './mortal-log.js';
import type { NestedPlan } from './nested-councils.js';
import { NESTED, nestedModel } from './nested-councils.js';
import { openTestEngine, runRequest } from './open-engine.js';
import { allFinished } from './run-when.js';

const plan = JSON.parse(process.argv[2] ?? '{}') as NestedPlan;
const { crash, runId } = plan;
const dieAt = deathAt(crash);

let calls = 0;
const engine = await openTestEngine({
  ...plan,
  model: nestedModel(plan.callsFile, () => dieAt('call', calls++)),
  decorate: (log) => mortalLog(log, (stream) => runIdOf(stream) !== null, dieAt),
});
await engine.recover();
await engine.registry.start(runRequest(runId, { topic: 'T', graph: NESTED }));
await allFinished(engine, [runId]);
await engine.stop();
