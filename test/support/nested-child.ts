/** A process that runs a council of councils and kills itself at a chosen append or call. Takes a NestedPlan as its argument. */
import { runIdOf } from '../../src/run/events.js';
import { changedLog } from './changed-log.js';
import type { NestedPlan } from './nested-councils.js';
import { NESTED, nestedModel } from './nested-councils.js';
import { openTestEngine, runRequest } from './open-engine.js';
import { allFinished } from './run-when.js';

const plan = JSON.parse(process.argv[2] ?? '{}') as NestedPlan;
const { crash, runId } = plan;

function dieAt(boundary: NestedPlan['crash']['boundary'], ordinal: number): void {
  if (crash.boundary === boundary && crash.ordinal === ordinal) process.kill(process.pid, 'SIGKILL');
}

let appends = 0;
let calls = 0;
const engine = await openTestEngine({
  ...plan,
  model: nestedModel(plan.callsFile, () => dieAt('call', calls++)),
  decorate: (log) =>
    changedLog(log, {
      async append(stream, events, expected) {
        if (runIdOf(stream) === null) return await log.append(stream, events, expected);
        const ordinal = appends++;
        dieAt('unsent', ordinal);
        const appending = log.append(stream, events, expected);
        // After two turns, the kill hits the write at any point.
        setImmediate(() => setImmediate(() => dieAt('sent', ordinal)));
        const appended = await appending;
        dieAt('durable', ordinal);
        return appended;
      },
    }),
});
await engine.recover();
await engine.registry.start(runRequest(runId, { topic: 'T', graph: NESTED }));
await allFinished(engine, [runId]);
await engine.stop();
process.stdout.write(`${appends} appends\n`);
