/** Very many runs under way at once on slow models: what they cost, and how they come through a kill. */
import { once } from 'node:events';
import { Agent } from 'node:http';
import type { RunEventsPage } from '../../src/generated/schemas.js';
import { untilTrue } from '../support/until-true.js';
import { tempDir } from '../support/temp-dir.js';
import { closedLoop } from './closed-loop.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure, unmeasured } from './figure.js';
import { residentMb } from './machine.js';
import { exchange, textIn } from './rest-clients.js';
import type { ServiceProcess } from './service-process.js';
import { startServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

const CLIENTS = 50;
const ROOM = { MAX_ACTIVE_RUNS: '20000', MAX_MODEL_CALLS: '40000' };
const SLOW_MS = 30_000;
/** After the kill, so that the runs come to their end while somebody waits for it. */
const SWIFT_MS = 1_000;
/** Runs looked at for calls that were made again. */
const LOOKED_AT = 200;

/** Issue 18, 6, and issue 17, 3. */
const TARGETS = {
  memory: { atMost: 600 },
  latency: { atMost: 100 },
  ready: { atMost: 3_000 },
  moving: { atMost: 10_000 },
  repeated: { atMost: 1 },
};

export const inFlightPart: Part = {
  name: 'in-flight',
  method: ({ inFlightRuns, requests }) =>
    `dist/src/main.js in a process of its own, offline model that takes ${SLOW_MS / 1_000} s, room for all: ` +
    `${inFlightRuns} runs started by ${CLIENTS} clients, then ${requests} runs in God Mode approved one by one beside ` +
    `them. Then SIGKILL, and a start on the same folder with a model that takes ${SWIFT_MS / 1_000} s: until ready, until ` +
    `the first run of before has ended, until all have; and of ${LOOKED_AT} of them the most calls that were made again.`,
  async measure(effort) {
    const dir = tempDir();
    let service = await startServiceProcess(dir.path, {
      environment: { ...ROOM, OFFLINE_LATENCY_MS: String(SLOW_MS) },
    });
    try {
      const before = await underLoad(service, effort);
      service.child.kill('SIGKILL');
      await once(service.child, 'close');
      const from = performance.now();
      service = await startServiceProcess(dir.path, { environment: { ...ROOM, OFFLINE_LATENCY_MS: String(SWIFT_MS) } });
      return [...before, ...(await afterKill(service, from, effort))];
    } finally {
      await service.stop();
      dir.remove();
    }
  },
};

async function underLoad({ url, pid }: ServiceProcess, { inFlightRuns, requests }: Effort): Promise<readonly Figure[]> {
  const agent = new Agent({ keepAlive: true });
  const post = (path: string, body: object): Promise<unknown> => exchange(agent, url + path, JSON.stringify(body));
  const act = async (): Promise<void> => {
    await post('/api/councils/run', { input_topic: 'The sea' });
  };
  try {
    const starts = await closedLoop({ clients: CLIENTS, goesOn: (acts) => acts < inFlightRuns, act });
    const approvals = await approvalsMs(url, post, requests);
    const of = `${inFlightRuns.toLocaleString('en-US')} in flight:`;
    return [
      figure(`${of} a start, p99`, 'ms', [percentile(starts.latenciesMs, 0.99)], TARGETS.latency),
      figure(`${of} an approval, p99`, 'ms', [percentile(approvals, 0.99)], TARGETS.latency),
      resident(`${of} memory at its highest`, residentMb(pid, 'VmHWM')),
    ];
  } finally {
    agent.destroy();
  }
}

/** What it takes to approve a pause, one after the other. */
async function approvalsMs(
  url: string,
  post: (path: string, body: object) => Promise<unknown>,
  count: number,
): Promise<readonly number[]> {
  const saved = await fetch(`${url}/api/councils/`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ id: 'one', name: 'One', nodes: [{ id: 'writer' }] }),
  });
  if (saved.status !== 201) throw new Error(`The blueprint was answered ${saved.status}`);
  const times: number[] = [];
  while (times.length < count) {
    const runId = textIn(await post('/api/councils/one/run', { input_topic: 'The sea', god_mode: true }), 'run_id');
    await untilTrue(async () => (await (await fetch(`${url}/api/councils/run/${runId}`)).text()).includes('"paused"'));
    const from = performance.now();
    await post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
    times.push(performance.now() - from);
  }
  return times;
}

async function afterKill(
  { url, pid }: ServiceProcess,
  from: number,
  { inFlightRuns }: Effort,
): Promise<readonly Figure[]> {
  const sinceMs = async (isSo: () => Promise<boolean>): Promise<readonly number[]> => {
    await untilTrue(isSo);
    return [performance.now() - from];
  };
  const hasEnded = (count: number) => async (): Promise<boolean> => {
    const reply = await fetch(`${url}/api/runs/?status=completed&limit=1&count=1`);
    await reply.text();
    return Number(reply.headers.get('Total-Count')) >= count;
  };
  const of = 'killed and started anew:';
  return [
    figure(`${of} ready`, 'ms', await sinceMs(async () => (await fetch(`${url}/api/health/ready`)).ok), TARGETS.ready),
    figure(`${of} first of the runs ended`, 'ms', await sinceMs(hasEnded(1)), TARGETS.moving),
    figure(`${of} all of them ended`, 'ms', await sinceMs(hasEnded(inFlightRuns))),
    figure(`${of} calls of a run made again, at most`, '', [await mostRepeated(url)], TARGETS.repeated),
    resident(`${of} memory at its highest`, residentMb(pid, 'VmHWM')),
  ];
}

async function mostRepeated(url: string): Promise<number> {
  const runs = (await (await fetch(`${url}/api/runs/?limit=${LOOKED_AT}&status=completed`)).json()) as { id: string }[];
  const repeated = runs.map(async ({ id }) => {
    const { events } = (await (await fetch(`${url}/api/runs/${id}/events?limit=1000`)).json()) as RunEventsPage;
    return events.filter(({ type, data }) => type === 'NodeStarted' && Number('attempt' in data ? data.attempt : 1) > 1)
      .length;
  });
  return Math.max(...(await Promise.all(repeated)));
}

function resident(name: string, valueMb: number | null): Figure {
  if (valueMb === null) return unmeasured(name, 'MB', 'this system has no /proc');
  return figure(name, 'MB', [valueMb], TARGETS.memory);
}
