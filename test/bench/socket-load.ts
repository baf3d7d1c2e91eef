/** Runs started evenly on the real service, each followed by a socket from before its first draft to its end. */
import { once } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { NewEvent } from '../../src/eventlog/port.js';
import type { LanguageModel } from '../../src/models/port.js';
import { instantModel } from '../support/instant-model.js';
import { tempDir } from '../support/temp-dir.js';
import { openBenchService } from './bench-service.js';
import { watchLoopDelay } from './loop-delay.js';
import { exchange, textIn } from './rest-clients.js';

export interface SocketLoad {
  /** From an append's acknowledgement to the arrival of each message it caused. */
  readonly latenciesMs: readonly number[];
  readonly runsPerSecond: number;
  readonly loopDelayP99Ms: number;
}

/** @throws {Error} a message was not told, or one too many */
export async function socketLoad(load: {
  readonly runsPerSecond: number;
  readonly seconds: number;
}): Promise<SocketLoad> {
  const gates = new Map<string, () => void>();
  const acknowledged = new Map<string, number[]>();
  const dir = tempDir();
  const service = await openBenchService({
    path: dir.path,
    model: gatedModel(gates),
    onAppended: (stream, events) => noteChanges(acknowledged, stream, events),
  });
  const agent = new Agent({ keepAlive: true });
  const latenciesMs: number[] = [];
  const follow = async (topic: string): Promise<void> => {
    const body = JSON.stringify({ input_topic: topic });
    const runId = textIn(await exchange(agent, `${service.url}/api/councils/run`, body), 'run_id');
    const arrivals = await followed(service.url, runId, () => gates.get(topic)?.());
    latenciesMs.push(...latenciesOf(arrivals, acknowledged.get(`run-${runId}`) ?? []));
    acknowledged.delete(`run-${runId}`);
    gates.delete(topic);
  };
  try {
    const loopDelay = watchLoopDelay();
    const from = performance.now();
    const runs = await startedEvenly(load, (index) => follow(`Topic ${index}`));
    const elapsedMs = performance.now() - from;
    return { latenciesMs, runsPerSecond: runs / (elapsedMs / 1_000), loopDelayP99Ms: loopDelay.p99Ms() };
  } finally {
    agent.destroy();
    await service.stop();
    dir.remove();
  }
}

async function startedEvenly(
  { runsPerSecond, seconds }: { readonly runsPerSecond: number; readonly seconds: number },
  start: (index: number) => Promise<void>,
): Promise<number> {
  const total = Math.round(runsPerSecond * seconds);
  const underWay: Promise<void>[] = [];
  const from = performance.now();
  for (let i = 0; i < total; i += 1) {
    const waitMs = from + (i * 1_000) / runsPerSecond - performance.now();
    if (waitMs > 0) await delay(waitMs);
    const run = start(i);
    run.catch(() => undefined);
    underWay.push(run);
  }
  await Promise.all(underWay);
  return total;
}

interface Arrival {
  readonly event: string;
  readonly atMs: number;
}

/** What a run's channel tells from `node_active` of the first node on, until it is closed. */
async function followed(url: string, runId: string, onOpen: () => void): Promise<readonly Arrival[]> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws/council/${runId}`);
  const arrivals: Arrival[] = [];
  socket.on('message', (data: Buffer) => {
    const atMs = performance.now();
    const event = textIn(JSON.parse(data.toString('utf8')), 'event');
    if (event === 'connected') onOpen();
    else arrivals.push({ event, atMs });
  });
  await once(socket, 'close');
  return arrivals;
}

/** When the appends that changed the active node were acknowledged, the last being the run's end. */
function noteChanges(acknowledged: Map<string, number[]>, stream: string, events: readonly NewEvent[]): void {
  if (!events.some(({ type }) => type === 'NodeStarted' || type === 'RunCompleted')) return;
  const times = acknowledged.get(stream) ?? [];
  times.push(performance.now());
  acknowledged.set(stream, times);
}

/** Each change is told by one `node_active`, the end also by `run_complete`. The first was not live: it is left out. */
function latenciesOf(arrivals: readonly Arrival[], acknowledgedMs: readonly number[]): readonly number[] {
  const changes = arrivals.filter(({ event }) => event === 'node_active');
  const end = arrivals.filter(({ event }) => event === 'run_complete');
  if (changes.length !== acknowledgedMs.length || end.length !== 1 || changes.length < 2) {
    const told = arrivals.map(({ event }) => event).join(', ');
    throw new Error(`${acknowledgedMs.length} changes of the active node were told as: ${told}`);
  }
  const pairs = changes.map(({ atMs }, index) => atMs - (acknowledgedMs[index] ?? Number.NaN)).slice(1);
  return [...pairs, ...end.map(({ atMs }) => atMs - (acknowledgedMs.at(-1) ?? Number.NaN))];
}

/** The instant model, whose first answer of a run waits for the gate of its topic. */
function gatedModel(gates: Map<string, () => void>): LanguageModel {
  const model = instantModel();
  return {
    ...model,
    async ask(request, call) {
      const { topic, draft } = request.promptInput;
      if (draft === null) await new Promise<void>((resolve) => gates.set(topic, resolve));
      return await model.ask(request, call);
    },
  };
}
