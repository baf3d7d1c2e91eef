/** The service on EventStoreDB: what its log takes, what an engine makes of it, and what more instances give. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { tempDir } from '../support/temp-dir.js';
import { elementAt } from '../../src/system/element.js';
import type { ClosedLoop } from './closed-loop.js';
import { bounded } from './closed-loop.js';
import { engineRate } from './engine.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure, unmeasured } from './figure.js';
import { handoverMs } from './handover.js';
import { appendRate } from './raw-log.js';
import { restLoad } from './rest-clients.js';
import { processorMs } from './machine.js';
import type { ServiceProcess } from './service-process.js';
import { startServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

/** Issue 5: takeover within 2 s of a graceful stop. */
const TARGET_HANDOVER = { atMost: 2_000 };
const CLIENTS = 60;
const POLL_MS = 20;

export const eventStorePart: Part = {
  name: 'eventstore',
  method: ({ rounds, engineSeconds, rawSeconds, restSeconds, warmUpSeconds, handoverRuns }) =>
    `Only with --eventstore, against the server that EVENTSTORE_URL names, on the same machine; streams under a prefix of ` +
    `their own each time. The log alone and the engine as in the part "engine" (${rounds} rounds of ${rawSeconds} s and ` +
    `${engineSeconds} s, after one of ${warmUpSeconds} s that does not count); then 1, 2 and 3 processes of dist/src/main.js, offline model, with ${CLIENTS} polling REST ` +
    `clients spread over them for ${restSeconds} s; then ${rounds} times two of them, of which the ` +
    `one with ${handoverRuns} active runs is sent SIGTERM: the time until the other has claimed the last of them. Then ` +
    `two of them, all clients at the first: what a run costs each.`,
  async measure(effort) {
    const url = process.env['EVENTSTORE_URL'] ?? '';
    if (url === '') return [unmeasured('on EventStoreDB', '', 'EVENTSTORE_URL is not set')];
    const figures: Figure[] = [];
    const { warmUpSeconds } = effort;
    const warmUp = { ...effort, rounds: 1, engineSeconds: warmUpSeconds, rawSeconds: warmUpSeconds };
    for (const concurrent of effort.concurrencies) await engineFigures(url, concurrent, warmUp);
    for (const concurrent of effort.concurrencies) figures.push(...(await engineFigures(url, concurrent, effort)));
    for (const instances of [1, 2, 3]) figures.push(...(await instanceFigures(url, instances, effort)));
    figures.push(await handoverFigure(url, effort));
    figures.push(...(await watchingFigures(url, effort)));
    return figures;
  },
};

function logOn(url: string): EventLog {
  return openEventStoreLog({ url, prefix: freshPrefix(), system: nodeSystem() });
}

async function handoverFigure(url: string, { rounds, handoverRuns: runs }: Effort): Promise<Figure> {
  const took: number[] = [];
  for (let i = 0; i < rounds; i += 1) {
    const prefix = freshPrefix();
    const environment = environmentOf(url, prefix);
    const log = openEventStoreLog({ url, prefix, system: nodeSystem() });
    took.push(await handoverMs({ runs, environment, log }));
  }
  return figure(
    `on EventStoreDB, ${runs} active runs: from SIGTERM to the last taken over`,
    'ms',
    took,
    TARGET_HANDOVER,
  );
}

function environmentOf(url: string, prefix = freshPrefix()): Readonly<Record<string, string>> {
  return { EVENTSTORE_URL: url, EVENTSTORE_PREFIX: prefix, LOG_LEVEL: 'error' };
}

function freshPrefix(): string {
  return `b${randomUUID().replaceAll('-', '')}`;
}

async function engineFigures(url: string, concurrent: number, effort: Effort): Promise<readonly Figure[]> {
  const appends: number[] = [];
  const [runs, p50, p99]: [number[], number[], number[]] = [[], [], []];
  for (let i = 0; i < effort.rounds; i += 1) {
    appends.push(await appendRate(logOn(url), { streams: concurrent, seconds: effort.rawSeconds }));
    const dir = tempDir();
    const openLog = () => Promise.resolve(logOn(url));
    const rate = await engineRate(dir.path, { concurrent, seconds: effort.engineSeconds, openLog });
    dir.remove();
    runs.push(rate.runsPerSecond);
    p50.push(rate.p50Ms);
    p99.push(rate.p99Ms);
  }
  const at = `on EventStoreDB, ${concurrent} at once:`;
  return [
    figure(`${at} durable appends of the log alone`, '/s', appends),
    figure(`${at} runs`, '/s', runs),
    figure(`${at} a run, p50`, 'ms', p50),
    figure(`${at} a run, p99`, 'ms', p99),
  ];
}

async function instanceFigures(url: string, instances: number, effort: Effort): Promise<readonly Figure[]> {
  const dir = tempDir();
  const environment = environmentOf(url);
  const services = await Promise.all(
    Array.from({ length: instances }, (_, index) =>
      startServiceProcess(join(dir.path, String(index)), { environment }),
    ),
  );
  const load = (seconds: number) =>
    Promise.all(
      services.map((service) =>
        restLoad({ url: service.url, clients: CLIENTS / instances, pollMs: POLL_MS, goesOn: bounded({ seconds }) }),
      ),
    );
  try {
    await load(effort.warmUpSeconds);
    const before = processorMsOf(services);
    const loads = await load(effort.restSeconds);
    const usedMs = processorMsOf(services) - before;
    const latencies = loads.flatMap(({ latenciesMs }) => latenciesMs);
    const runs = loads.reduce((sum, { acts, elapsedMs }) => sum + acts / (elapsedMs / 1_000), 0);
    const at = `on EventStoreDB, ${instances} ${instances === 1 ? 'instance' : 'instances'}, ${CLIENTS} REST clients:`;
    return [
      figure(`${at} runs`, '/s', [runs]),
      figure(`${at} processor time of all instances, a run`, 'ms', [
        usedMs / loads.reduce((sum, { acts }) => sum + acts, 0),
      ]),
      figure(`${at} start to completed seen, p50`, 'ms', [percentile(latencies, 0.5)]),
      figure(`${at} start to completed seen, p99`, 'ms', [percentile(latencies, 0.99)]),
    ];
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    dir.remove();
  }
}

/** What a run costs the instance that drives it, and another that only has to know of it. */
async function watchingFigures(url: string, effort: Effort): Promise<readonly Figure[]> {
  const dir = tempDir();
  const environment = environmentOf(url);
  const services: ServiceProcess[] = [];
  try {
    for (const name of ['driving', 'watching'])
      services.push(await startServiceProcess(join(dir.path, name), { environment }));
    const turns = Array.from({ length: 1 + effort.rounds }, (_, turn) =>
      turn === 0 ? 'warmUpSeconds' : 'restSeconds',
    );
    const costs: (readonly number[])[] = [];
    for (const seconds of turns) costs.push(await costsOf(services, bounded({ seconds: effort[seconds] })));
    return ['of driving a run', 'of a run that another instance drives'].map((what, at) =>
      figure(
        `on EventStoreDB: processor time ${what}`,
        'ms',
        costs.slice(1).map((cost) => elementAt(cost, at)),
      ),
    );
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    dir.remove();
  }
}

/** Processor time of each service for a run of the first. */
async function costsOf(services: readonly ServiceProcess[], goesOn: ClosedLoop['goesOn']): Promise<readonly number[]> {
  const before = services.map(({ pid }) => processorMs(pid));
  const { url } = elementAt(services, 0);
  const { acts } = await restLoad({ url, clients: CLIENTS, pollMs: POLL_MS, goesOn });
  return services.map(({ pid }, at) => (processorMs(pid) - elementAt(before, at)) / acts);
}

function processorMsOf(services: readonly ServiceProcess[]): number {
  return services.reduce((sum, { pid }) => sum + processorMs(pid), 0);
}
