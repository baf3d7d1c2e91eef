/**
 * A process that runs councils on a folder and kills itself at a chosen point of one run, as a power cut would. Takes a
 * CrashPlan as its argument; prints each accepted run on a line.
 */
import { writeSync } from 'node:fs';
import type { Graph, RunBudget } from '../../src/generated/schemas.js';
import type { ClusterSettings } from '../../src/cluster/failure-detector.js';
import type { EventStoreSettings } from '../../src/config.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { runStream } from '../../src/run/events.js';
import { changedLog } from './changed-log.js';
import { countedModel } from './counted-model.js';
import { approveAll } from './god-run.js';
import { LONG_MATERIAL } from './panel-graph.js';
import { openTestEngine, runRequest } from './open-engine.js';
import { allFinished } from './run-when.js';

/** Where a process may die around an append (its ordinal counts the appends to the run here) or a call to the model. */
export type Boundary =
  | 'append unsent'
  | 'append sent'
  | 'append durable'
  | 'adopted, call unmade'
  | 'call under way'
  | 'append shown';

export interface CrashPlan {
  readonly path: string;
  readonly callsFile: string;
  readonly maxActiveRuns: number;
  readonly runIds: readonly string[];
  /** Runs this graph in God Mode and approves every pause; absent: the fixed graph. */
  readonly godModeGraph?: Graph;
  /** Runs this graph with a long material; its calls are counted by model. Absent: the fixed graph. */
  readonly panelGraph?: Graph;
  /** The server of the log that the process shares with others, and the pace of their heartbeats; absent: its own log. */
  readonly shared?: { readonly eventStore: EventStoreSettings; readonly cluster: ClusterSettings };
  /** The budget of each run, whose critics are asked twice. Absent: none. */
  readonly budget?: RunBudget;
  /** If it never reaches this point, it runs all councils to their end and stops. */
  readonly crash: { readonly boundary: Boundary; readonly ordinal: number; readonly runId: string };
}

const plan = JSON.parse(process.argv[2] ?? '{}') as CrashPlan;
const { crash } = plan;
const { panelGraph, shared } = plan;
const plainCouncil = panelGraph === undefined ? {} : { graph: panelGraph, material: LONG_MATERIAL };
const council = plan.godModeGraph === undefined ? plainCouncil : { graph: plan.godModeGraph, godMode: true };

function dieAt(boundary: Boundary, ordinal: number): void {
  if (crash.boundary === boundary && crash.ordinal === ordinal) process.kill(process.pid, 'SIGKILL');
}

/** Last revision of each append to the run. */
const lastSeqs: number[] = [];

function mortalLog(log: EventLog): EventLog {
  return changedLog(log, {
    async append(stream, events, expected) {
      if (stream !== runStream(crash.runId)) return await log.append(stream, events, expected);
      const ordinal = lastSeqs.push((expected === 'none' ? -1 : expected) + events.length) - 1;
      dieAt('append unsent', ordinal);
      const appending = log.append(stream, events, expected);
      // The log hands its batch to its thread in the next turn. After that, the kill hits the write at any point.
      setImmediate(() => setImmediate(() => dieAt('append sent', ordinal)));
      const appended = await appending;
      dieAt('append durable', ordinal);
      return appended;
    },
  });
}

let calls = -1;
let underWay = -1;
const isOurs = (topic: string): boolean => topic === crash.runId;
const model = countedModel(plan.callsFile, {
  areCriticsVague: plan.budget !== undefined,
  namesModels: panelGraph !== undefined,
  before: ({ promptInput }) => {
    if (!isOurs(promptInput.topic)) return;
    calls += 1;
    dieAt('adopted, call unmade', calls);
  },
  during: ({ promptInput }) => {
    if (!isOurs(promptInput.topic)) return;
    underWay += 1;
    dieAt('call under way', underWay);
  },
});

const engine = await openTestEngine({ ...plan, ...shared, model, decorate: mortalLog });
await engine.recover();
const starting = plan.runIds.map(async (runId) => {
  const request = runRequest(runId, { topic: runId, ...council });
  await engine.registry.start({ ...request, ...(plan.budget !== undefined && { budget: plan.budget }) });
  writeSync(1, `${runId}\n`);
  if (plan.godModeGraph !== undefined) void approveAll(engine, runId);
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
