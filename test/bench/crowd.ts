/** Very many clients, of whom some never read, and others who never finish their request. */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openSocket } from '../support/raw-exchange.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import type { CrowdOrder, CrowdReport } from './crowd-clients.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure, unmeasured } from './figure.js';
import { residentMb } from './machine.js';
import { exchange, textIn } from './rest-clients.js';
import type { ServiceProcess } from './service-process.js';
import { startServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

/** Of ten clients one never reads, and one of a hundred never finishes its request. */
const STALLED = 1 / 10;
const HALF_OPEN = 1 / 100;
/** A draft of a human, told to everybody who watches in full; and how often one is given. */
const DRAFT_CHARS = 120_000;
const DRAFTS = 40;
/**
 * Time between two decisions. As fast as they can be made, some twenty a second, the one process of all clients does not
 * read 200 drafts each, and whoever does not keep up is to be cut off.
 */
const DECISION_EVERY_MS = 300;
const HEALTH_EVERY_MS = 20;
/** Beside readers of drafts of this size there are at most so many, or all that is measured is the machine's memory bus. */
const MAX_RICH_READERS = 100;

/** Close code for a reader that is too slow. */
const TOO_SLOW = '4408';
/** What a client sees where the connection was ended before a close could be read. */
const NO_CLOSE = '1006';

/** Issue 17, 3. */
const TARGETS = { told: { atMost: 1_000 }, health: { atMost: 50 } };

export const crowdPart: Part = {
  name: 'crowd',
  method: ({ watchers }) =>
    `dist/src/main.js in a process of its own, ${watchers} clients in another: one in ten opens a rich channel and never ` +
    `reads, ${MAX_RICH_READERS} at most do and as many event streams, all of one run in God Mode; the others are channels of ` +
    `another. Beside them ${watchers * HALF_OPEN} connections that never finish their request. ${DRAFTS} decisions with a ` +
    `draft of ${DRAFT_CHARS / 1_000} KB each on the one, ${DECISION_EVERY_MS} ms apart, then as many on the other: how long after a run's last ` +
    `event its readers were told of it, and health asked every ${HEALTH_EVERY_MS} ms all the while.`,
  async measure(effort) {
    const dir = tempDir();
    const service = await startServiceProcess(dir.path, { environment: { OFFLINE_LATENCY_MS: '0' } });
    try {
      return await withCrowd(service, effort);
    } finally {
      await service.stop();
      dir.remove();
    }
  },
};

async function withCrowd(service: ServiceProcess, { watchers }: Effort): Promise<readonly Figure[]> {
  const { url } = service;
  await saveLine(url);
  const runs = { quiet: await pausedRun(url), loud: await pausedRun(url) };
  const stalled = watchers * STALLED;
  const readers = watchers - stalled;
  const rich = Math.min(MAX_RICH_READERS, readers / 4);
  const clients = { channel: readers - 2 * rich, rich: rich + stalled, stream: rich };
  const crowd = crowdOf({ url, ...runs, stalled, clients });
  try {
    return await watched(service, { runs, watchers, crowd });
  } finally {
    crowd.child.kill();
  }
}

interface Watched {
  readonly runs: Pick<CrowdOrder, 'quiet' | 'loud'>;
  readonly watchers: number;
  readonly crowd: Crowd;
}

async function watched({ url, pid }: ServiceProcess, { runs, watchers, crowd }: Watched): Promise<readonly Figure[]> {
  const idleMb = residentMb(pid, 'VmRSS');
  const halfOpen = await Promise.all(Array.from({ length: watchers * HALF_OPEN }, () => halfRequest(url)));
  const opened = await crowd.next('open');
  const openMb = residentMb(pid, 'VmRSS');
  const health = askHealth(url);
  const loudEndMs = await played(url, runs.loud, draft);
  const quietEndMs = await played(url, runs.quiet, () => undefined);
  const told = await crowd.next('told');
  const healthMs = await health.stop();
  const mostMb = residentMb(pid, 'VmHWM');
  crowd.child.send('close');
  const { codes } = await crowd.next('closed');
  for (const socket of halfOpen) socket.destroy();
  await untilTrue(async () => (await fetch(`${url}/api/health/ready`)).ok);
  const of = `${watchers.toLocaleString('en-US')} clients:`;
  const after = (times: readonly number[], end: number): number =>
    percentile(
      times.map((each) => each - end),
      0.99,
    );
  const closedBy = (isMeant: (code: string) => boolean): number =>
    Object.entries(codes).reduce((sum, [code, count]) => sum + (isMeant(code) ? count : 0), 0);
  return [
    figure(`${of} refused, or cut off though they read`, '', [opened.refused + told.unclean], { atMost: 0 }),
    figure(`${of} told the end on channels, p99`, 'ms', [after(told.quietMs, quietEndMs)], TARGETS.told),
    figure(`${of} told the end in full, p99`, 'ms', [after(told.loudMs, loudEndMs)], TARGETS.told),
    figure(`${of} health meanwhile, p99`, 'ms', [percentile(healthMs, 0.99)], TARGETS.health),
    figure(`${of} those who never read, cut off`, '', [closedBy(isCutOff)], { atLeast: watchers * STALLED }),
    figure(`${of} closed otherwise`, '', [closedBy((code) => !isCutOff(code))], { atMost: 0 }),
    figure(`${of} that could read the reason, 4408`, '', [closedBy((code) => code === TOO_SLOW)]),
    resident(`${of} memory before they came`, idleMb),
    resident(`${of} memory once they are open`, openMb),
    resident(`${of} memory at its highest`, mostMb),
  ];
}

function isCutOff(code: string): boolean {
  return code === TOO_SLOW || code === NO_CLOSE;
}

/** Takes a run from pause to pause to its end; returns when that was. */
async function played(url: string, runId: string, draftOf: (count: number) => string | undefined): Promise<number> {
  for (let given = 0; await isPaused(url, runId); given += 1) {
    await decide(url, runId, given < DRAFTS ? draftOf(given) : undefined);
    await delay(DECISION_EVERY_MS);
  }
  return await endMs(url, runId);
}

function draft(count: number): string {
  return `${count} `.padEnd(DRAFT_CHARS, 'The sea is wide. ');
}

/** Each on a connection of its own: one that is kept may be closed just when it is used again. */
async function send(url: string, path: string, body: object | null): Promise<unknown> {
  const agent = new Agent({ keepAlive: false });
  return await exchange(agent, url + path, body === null ? null : JSON.stringify(body));
}

/** A council of a line of nodes. */
async function saveLine(url: string): Promise<void> {
  const nodes = Array.from({ length: DRAFTS + 2 }, (_, index) => ({ id: `n${index}`, label: `Writer ${index}` }));
  const edges = nodes.slice(1).map(({ id }, index) => ({ source: `n${index}`, target: id }));
  const saved = await fetch(`${url}/api/councils/`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ id: 'line', name: 'Line', nodes, edges }),
  });
  if (saved.status !== 201) throw new Error(`The blueprint was answered ${saved.status}`);
}

/** A run of it in God Mode, which pauses before each node. */
async function pausedRun(url: string): Promise<string> {
  const runId = textIn(await send(url, '/api/councils/line/run', { input_topic: 'The sea', god_mode: true }), 'run_id');
  await isPaused(url, runId);
  return runId;
}

/** Whether it comes to a pause again. */
async function isPaused(url: string, runId: string): Promise<boolean> {
  for (;;) {
    const status = textIn(await send(url, `/api/councils/run/${runId}`, null), 'status');
    if (status === 'paused') return true;
    if (status !== 'running' && status !== 'pending') return false;
    await delay(5);
  }
}

/** Lets the run go on to its next pause, or to its end, with another draft or with its own. */
async function decide(url: string, runId: string, currentDraft?: string): Promise<void> {
  const override = currentDraft === undefined ? {} : { modified_state: { current_draft: currentDraft } };
  await send(url, `/api/councils/run/${runId}/approve`, { action: 'modify', ...override });
}

/** When the run's last event was recorded, in milliseconds since 1970. */
async function endMs(url: string, runId: string): Promise<number> {
  const reply = await fetch(`${url}/api/runs/${runId}/events`, { headers: { Accept: 'application/x-ndjson' } });
  return Date.parse(textIn(JSON.parse((await reply.text()).trimEnd().split('\n').at(-1) ?? ''), 'at'));
}

async function halfRequest(url: string): Promise<Socket> {
  const socket = await openSocket(url);
  socket.on('error', () => undefined);
  socket.write('GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ');
  return socket;
}

function askHealth(url: string): { stop(): Promise<readonly number[]> } {
  const times: number[] = [];
  const stopping = new AbortController();
  const asking = (async () => {
    while (!stopping.signal.aborted) {
      const from = performance.now();
      await send(url, '/api/health', null);
      times.push(performance.now() - from);
      await delay(HEALTH_EVERY_MS);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await asking;
      return times;
    },
  };
}

type Told<Kind extends CrowdReport['kind']> = Extract<CrowdReport, { kind: Kind }>;

interface Crowd {
  readonly child: ChildProcess;
  /** @throws {Error} when the process ends before */
  next<Kind extends CrowdReport['kind']>(kind: Kind): Promise<Told<Kind>>;
}

function crowdOf(order: CrowdOrder): Crowd {
  const child = fork(fileURLToPath(new URL('./crowd-clients.js', import.meta.url)), [JSON.stringify(order)]);
  const told: CrowdReport[] = [];
  let wake = (): void => undefined;
  let isOver = false;
  child.on('message', (message) => {
    // It sends reports alone, typed where they are sent.
    told.push(message as CrowdReport);
    wake();
  });
  child.on('close', () => {
    isOver = true;
    wake();
  });
  return {
    child,
    async next(kind) {
      for (;;) {
        const report = told.find((each): each is Told<typeof kind> => each.kind === kind);
        if (report !== undefined) return report;
        if (isOver) throw new Error(`The clients ended before they were ${kind}`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}

function resident(name: string, valueMb: number | null): Figure {
  return valueMb === null ? unmeasured(name, 'MB', 'this system has no /proc') : figure(name, 'MB', [valueMb]);
}
