/** Measures the log and the engine on EventStoreDB, and polling clients of several instances on it. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog, NewEvent } from '../../src/eventlog/port.js';
import { elementAt } from '../../src/system/element.js';
import { nodeSystem } from '../../src/system/system.js';
import { startServiceProcess } from '../support/service-process.js';
import { tempDir } from '../support/temp-dir.js';
import { bounded, closedLoop } from './closed-loop.js';
import type { EngineRate } from './engine.js';
import { engineFigures, engineRate } from './engine.js';
import type { Effort, Figure, Part } from './figure.js';
import { CONCURRENCIES, figure, unmeasured } from './figure.js';
import { restLoad } from './rest-clients.js';
import { percentile } from './statistics.js';

const CLIENTS = 60;
const POLL_MS = 20;
/** About as many events as a run has. */
const APPENDS_PER_STREAM = 10;

export const eventStorePart: Part = {
  name: 'eventstore',
  method: ({ rounds, engineSeconds, restSeconds, warmUpSeconds }) =>
    `Only with --eventstore, on the server that EVENTSTORE_URL names, each time under a new prefix. The log alone (appends ` +
    `of two 300-byte events), and the engine as in the part "engine" on each log in turn, ${rounds} rounds of ` +
    `${engineSeconds} s after ${warmUpSeconds} s of warm-up; then 1, 2 and 3 processes of dist/src/main.js with the offline model and ${CLIENTS} ` +
    `polling REST clients spread over them, for ${restSeconds} s.`,
  async measure(effort) {
    const url = process.env['EVENTSTORE_URL'] ?? '';
    if (url === '') return [unmeasured('on EventStoreDB', '', 'EVENTSTORE_URL is not set')];
    const figures: Figure[] = [];
    for (const concurrent of CONCURRENCIES) figures.push(...(await figuresAt(url, concurrent, effort)));
    for (const instances of [1, 2, 3]) figures.push(...(await instanceFigures(url, instances, effort)));
    return figures;
  },
};

function openLogOn(url: string): EventLog {
  return openEventStoreLog({ url, prefix: newPrefix(), system: nodeSystem() });
}

function newPrefix(): string {
  return `b${randomUUID().replaceAll('-', '')}`;
}

async function figuresAt(
  url: string,
  concurrent: number,
  { rounds, warmUpSeconds, engineSeconds }: Effort,
): Promise<readonly Figure[]> {
  const openLog = () => Promise.resolve(openLogOn(url));
  await engineRate({ concurrent, seconds: warmUpSeconds });
  await engineRate({ concurrent, seconds: warmUpSeconds, openLog });
  const [appends, processorMs] = [[] as number[], [] as number[]];
  const [embedded, rates] = [[] as EngineRate[], [] as EngineRate[]];
  for (let i = 0; i < rounds; i += 1) {
    const rate = await appendRate(openLogOn(url), { writers: concurrent, seconds: engineSeconds });
    appends.push(rate.appendsPerSecond);
    processorMs.push(rate.processorMsPerAppend);
    embedded.push(await engineRate({ concurrent, seconds: engineSeconds }));
    rates.push(await engineRate({ concurrent, seconds: engineSeconds, openLog }));
  }
  const ratios = (value: (rate: EngineRate) => number): readonly number[] =>
    rates.map((rate, at) => value(rate) / value(elementAt(embedded, at)));
  const prefix = `on EventStoreDB, ${concurrent} concurrent:`;
  return [
    figure(`${prefix} durable appends of the log alone`, '/s', appends),
    figure(`${prefix} processor time per append`, 'ms', processorMs),
    ...engineFigures(prefix, rates),
    figure(
      `${prefix} runs, of the embedded log's`,
      '',
      ratios((rate) => rate.runsPerSecond),
    ),
    figure(
      `${prefix} processor time per run, of the embedded log's`,
      '',
      ratios((rate) => rate.processorMsPerRun),
    ),
    figure(
      `${prefix} duration of a run, p99, of the embedded log's`,
      '',
      ratios((rate) => rate.p99Ms),
    ),
  ];
}

/** Each writer appends two events at a time to streams of its own. Closes the log. */
async function appendRate(log: EventLog, { writers, seconds }: { readonly writers: number; readonly seconds: number }) {
  const before = process.cpuUsage();
  const { acts, elapsedMs } = await closedLoop({
    clients: writers,
    goesOn: bounded({ seconds }),
    act: async () => {
      const stream = `run-${randomUUID()}`;
      for (let i = 0; i < APPENDS_PER_STREAM; i += 1)
        await log.append(stream, [newEvent(), newEvent()], i === 0 ? 'none' : i * 2 - 1);
    },
  });
  const { user, system } = process.cpuUsage(before);
  await log.close();
  const appends = acts * APPENDS_PER_STREAM;
  return {
    appendsPerSecond: appends / (elapsedMs / 1_000),
    processorMsPerAppend: (user + system) / 1_000 / appends,
  };
}

function newEvent(): NewEvent {
  const data = JSON.stringify({ text: 'x'.repeat(289) });
  return { id: randomUUID(), type: 'NodeCompleted', data, metadata: { schemaVersion: '1' } };
}

async function instanceFigures(
  url: string,
  instances: number,
  { warmUpSeconds, restSeconds }: Effort,
): Promise<readonly Figure[]> {
  const dir = tempDir();
  const environment = { EVENTSTORE_URL: url, EVENTSTORE_PREFIX: newPrefix(), LOG_LEVEL: 'error' };
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
    await load(warmUpSeconds);
    const loads = await load(restSeconds);
    const latencies = loads.flatMap(({ latenciesMs }) => latenciesMs);
    const runs = loads.reduce((sum, { acts, elapsedMs }) => sum + acts / (elapsedMs / 1_000), 0);
    const prefix = `on EventStoreDB, instances: ${instances}, REST clients: ${CLIENTS}:`;
    return [
      figure(`${prefix} runs`, '/s', [runs]),
      figure(`${prefix} from start to completed, p50`, 'ms', [percentile(latencies, 0.5)]),
      figure(`${prefix} from start to completed, p99`, 'ms', [percentile(latencies, 0.99)]),
    ];
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    dir.remove();
  }
}
