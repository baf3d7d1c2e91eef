/**
 * A process that runs councils on a folder and kills itself at a chosen point of one run, as a power cut would. Takes a
 * CrashPlan as its argument; prints each accepted run on a line.
 */
import { writeSync } from 'node:fs';
import { runStream } from '../../src/run/events.js';
import { countedModel } from './counted-model.js';
import type { CrashedCouncil } from './crashed-councils.js';
import { crashedRequest } from './crashed-councils.js';
import { approveAll } from './god-run.js';
import type { AppendBoundary } from './mortal-log.js';
import { deathAt, mortalLog } from './mortal-log.js';
import { openTestEngine } from './open-engine.js';
import { allFinished } from './run-when.js';

/** Where a process may die around an append (its ordinal counts the appends to the run here) or a call to the model. */
export type Boundary = AppendBoundary | 'append shown' | 'adopted, call unmade' | 'call under way';

export interface CrashPlan {
  readonly path: string;
  readonly callsFile: string;
  readonly maxActiveRuns: number;
  readonly council: CrashedCouncil;
  readonly runIds: readonly string[];
  /** If it never reaches this point, it runs all councils to their end and stops. */
  readonly crash: { readonly boundary: Boundary; readonly ordinal: number; readonly runId: string };
}

const plan = JSON.parse(process.argv[2] ?? '{}') as CrashPlan;
const { council, crash } = plan;
const dieAt = deathAt(crash);

/** Last revision of each append to the run. */
const lastSeqs: number[] = [];
let [calls, underWay] = [0, 0];
const isOurs = (topic: string): boolean => topic === crash.runId;
const model = countedModel(plan.callsFile, {
  areCriticsVague: council === 'two calls',
  before: ({ promptInput }) => {
    if (isOurs(promptInput.topic)) dieAt('adopted, call unmade', calls++);
  },
  during: ({ promptInput }) => {
    if (isOurs(promptInput.topic)) dieAt('call under way', underWay++);
  },
});

const engine = await openTestEngine({
  ...plan,
  model,
  decorate: (log) =>
    mortalLog(
      log,
      (stream) => stream === runStream(crash.runId),
      (boundary, ordinal, lastSeq) => {
        lastSeqs[ordinal] = lastSeq;
        dieAt(boundary, ordinal);
      },
    ),
});
await engine.recover();
const starting = plan.runIds.map(async (runId) => {
  await engine.registry.start(crashedRequest(council, runId));
  writeSync(1, `${runId}\n`);
  if (council === 'God Mode') void approveAll(engine, runId);
  if (runId !== crash.runId) return;
  await engine.feed.follow(runId, {
    from: 'now',
    onState: ({ head }) => lastSeqs.forEach((last, ordinal) => head.seq >= last && dieAt('append shown', ordinal)),
    signal: new AbortController().signal,
  });
});
await Promise.all(starting);
await allFinished(engine, plan.runIds);
await engine.stop();
