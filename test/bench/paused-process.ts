/** An engine with many paused runs: sends what they cost to the process that forked it, and ends. */
import { setTimeout as delay } from 'node:timers/promises';
import { nodeSystem } from '../../src/system/system.js';
import { graphOf } from '../support/given.js';
import { decision } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { closedLoop } from './closed-loop.js';
import { percentile } from './statistics.js';

interface Memory {
  readonly residentMb: number;
  readonly heapMb: number;
}

interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface PausedReport {
  readonly before: Memory;
  readonly after: Memory;
  readonly pause: Latency;
  readonly approve: Latency;
}

const CLIENTS = 50;
/** Time in which what was begun can come to an end before memory is read. */
const REST_MS = 1_000;

const [, , path = '', runs = '0'] = process.argv;
const engine = await openTestEngine({ path, model: instantModel() });
const { uuid } = nodeSystem();
const template = runRequest('', { graph: graphOf('one -> two; two -> three'), godMode: true });
const runIds = Array.from({ length: Number(runs) }, uuid);

const before = await memory();
const pause = await eachRun((runId) => engine.registry.start({ ...template, runId }));
const after = await memory();
const approve = await eachRun((runId) => engine.registry.decidePause(runId, decision('approve')));
await engine.stop();
process.send?.({ before, after, pause, approve } satisfies PausedReport);

async function eachRun(act: (runId: string) => Promise<unknown>): Promise<Latency> {
  const left = runIds.values();
  const { latenciesMs } = await closedLoop({
    clients: CLIENTS,
    goesOn: (acts) => acts < runIds.length,
    act: async () => {
      await act(left.next().value ?? '');
    },
  });
  return { p50Ms: percentile(latenciesMs, 0.5), p99Ms: percentile(latenciesMs, 0.99) };
}

async function memory(): Promise<Memory> {
  await engine.queries.list({ limit: 1, offset: 0 });
  await delay(REST_MS);
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { residentMb: rss / 1e6, heapMb: heapUsed / 1e6 };
}
