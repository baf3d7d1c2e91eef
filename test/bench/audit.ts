/** What it costs to check and to replay a record, and whether reading one run slows down as the log grows. */
import { Agent, get } from 'node:http';
import { nodeSystem } from '../../src/system/system.js';
import { instantModel } from '../support/instant-model.js';
import { graphOf } from '../support/given.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { copiedRuns } from './copied-runs.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { textIn } from './rest-clients.js';
import type { ServiceProcess } from './service-process.js';
import { startServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

/** Events of a run of the fixed graph with the instant model. */
const EVENTS_A_RUN = 18;
/** Nodes of the long run, which goes round until no more are executed: three times as often. */
const LONG_NODES = 200;
/** Nothing that is asked of one run should grow with the log; with room for the noise of a shared machine. */
const TARGET_RATIO = { atMost: 1.25 };

export const auditPart: Part = {
  name: 'audit',
  method: ({ auditEvents, requests, rounds }) =>
    `Logs of ${auditEvents.map((events) => events.toLocaleString('en-US')).join(' and ')} events, copies of ` +
    `one run of the fixed graph appended under ids of their own, beside one long run of ${LONG_NODES} nodes that go round ` +
    `to the limit of executions. A service process on each (default settings), asked in turns, a ` +
    `request of one and a request of the other: ${rounds} rounds of ${requests} requests of each kind, p50 of each round. The ratio is that of ` +
    `the largest log to the smallest, round by round. Rates are the long run's events by the time its answer took.`,
  async measure(effort) {
    const houses: House[] = [];
    try {
      for (const events of effort.auditEvents) houses.push(await furnished(events));
      for (const house of houses) house.shortRun = await newestRun(house);
      return await figuresOf(houses, effort);
    } finally {
      for (const { service, agent, dir } of houses) {
        agent.destroy();
        await service.stop();
        dir.remove();
      }
    }
  },
};

interface House {
  readonly events: number;
  readonly dir: TempDir;
  readonly service: ServiceProcess;
  readonly agent: Agent;
  readonly longRun: string;
  readonly longEvents: number;
  shortRun: string;
}

async function furnished(events: number): Promise<House> {
  const dir = tempDir();
  try {
    const long = await longRun(dir.path);
    await copiedRuns(dir.path, { model: instantModel(), runs: Math.ceil(events / EVENTS_A_RUN) });
    const service = await startServiceProcess(dir.path);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    return { events, dir, service, agent, longRun: long.runId, longEvents: long.events, shortRun: '' };
  } catch (error) {
    dir.remove();
    throw error;
  }
}

/** Runs a ring of nodes until the limit of executions ends it. */
async function longRun(path: string): Promise<{ readonly runId: string; readonly events: number }> {
  const engine = await openTestEngine({ path, model: instantModel() });
  const runId = nodeSystem().uuid();
  const ring = Array.from({ length: LONG_NODES }, (_, index) => `n${index} -> n${(index + 1) % LONG_NODES}`);
  await engine.registry.start(runRequest(runId, { graph: graphOf(ring.join('; ')) }));
  const [run] = await allFinished(engine, [runId]);
  await engine.stop();
  return { runId, events: (run?.head.seq ?? -1) + 1 };
}

async function newestRun({ agent, service }: House): Promise<string> {
  const [newest]: unknown[] = JSON.parse(await textOf(agent, `${service.url}/api/runs/?limit=1`)) as unknown[];
  return textIn(newest, 'id');
}

/** What is asked of one run, or of the list, whatever else the log holds. */
const ASKED: Readonly<Record<string, (house: House) => string>> = {
  'list page of 50': () => '/api/runs/?limit=50',
  'state at an event': ({ shortRun }) => `/api/runs/${shortRun}/state?at=9`,
  'events page': ({ shortRun }) => `/api/runs/${shortRun}/events`,
  'whole stream': ({ shortRun }) => `/api/runs/${shortRun}/stream`,
  verify: ({ shortRun }) => `/api/runs/${shortRun}/verify`,
  genealogy: ({ shortRun }) => `/api/runs/${shortRun}/genealogy`,
  chart: ({ shortRun }) => `/api/runs/${shortRun}/chart?at=9`,
};

/** Of the long run, with what is told of its events. */
const RATES: Readonly<Record<string, (house: House) => string>> = {
  verified: ({ longRun: id }) => `/api/runs/${id}/verify`,
  replayed: ({ longRun: id }) => `/api/runs/${id}/state`,
  'told as genealogy': ({ longRun: id }) => `/api/runs/${id}/genealogy`,
};

async function figuresOf(houses: readonly House[], effort: Effort): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const having = ({ events }: House): string => `with ${events.toLocaleString('en-US')} events`;
  for (const [name, pathOf] of Object.entries(RATES)) {
    const times = await timesOf(houses, pathOf, { ...effort, requests: Math.ceil(effort.requests / 10) });
    houses.forEach((house, index) => {
      const rates = (times[index] ?? []).map((ms) => (1_000 * house.longEvents) / ms);
      figures.push(figure(`${having(house)}: events ${name}`, '/s', rates));
    });
  }
  for (const [name, pathOf] of Object.entries(ASKED)) {
    const times = await timesOf(houses, pathOf, effort);
    houses.forEach((house, index) => figures.push(figure(`${having(house)}: ${name}, p50`, 'ms', times[index] ?? [])));
    const [least = [], most = []] = [times.at(0), times.at(-1)];
    const ratios = least.map((ms, round) => (most[round] ?? Number.NaN) / ms);
    figures.push(figure(`${name}: most events to fewest`, '', ratios, TARGET_RATIO));
  }
  return figures;
}

/** Of each house the p50 of each round, in milliseconds. The houses take turns, so that both feel what else the machine does. */
async function timesOf(
  houses: readonly House[],
  pathOf: (house: House) => string,
  { rounds, requests }: Pick<Effort, 'rounds' | 'requests'>,
): Promise<readonly (readonly number[])[]> {
  const times = houses.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    const latencies = houses.map((): number[] => []);
    for (let request = 0; request < requests; request += 1) {
      for (const [index, house] of houses.entries()) latencies[index]?.push(await latencyMs(house, pathOf(house)));
    }
    latencies.forEach((each, index) => times[index]?.push(percentile(each, 0.5)));
  }
  return times;
}

async function latencyMs({ agent, service }: House, path: string): Promise<number> {
  const from = performance.now();
  await textOf(agent, service.url + path);
  return performance.now() - from;
}

function textOf(agent: Agent, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${url} was answered ${response.statusCode}: ${text}`));
      });
    });
    asked.on('error', reject);
  });
}
