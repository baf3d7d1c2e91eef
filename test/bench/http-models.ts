/** What a run costs the service when its models answer over HTTP. */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startServiceProcess } from '../support/service-process.js';
import { tempDir } from '../support/temp-dir.js';
import type { Effort, Part } from './figure.js';
import { figure, unmeasured } from './figure.js';
import { processorMs } from './machine.js';
import { exchange } from './rest-clients.js';

const STARTS_PER_SECOND = 180;
const NAME = 'model server that answers after 1 s: processor time per run, all threads';

export const httpModelsPart: Part = {
  name: 'http-models',
  method: ({ rounds, httpSeconds }) =>
    `dist/src/main.js with the flags of \`npm start\` and a model server of the OpenAI wire that answers after 1 s, each in a ` +
    `process of its own; ${STARTS_PER_SECOND} starts per second of the built-in council over REST (3 calls a run, no polls) ` +
    `for ${httpSeconds} s, ${rounds} rounds, each on a new data directory. Processor time is the service's, from the first ` +
    `start to the end of the last run, after a warm-up.`,
  async measure(effort) {
    const rounds: Round[] = [];
    for (let i = 0; i < effort.rounds; i += 1) rounds.push(await httpModelsRound(startServiceProcess, effort));
    const costs = rounds.flatMap(({ processorMsPerRun: cost }) => (cost === null ? [] : [cost]));
    return [
      costs.length === 0
        ? unmeasured(NAME, 'ms', 'this system has no /proc')
        : figure(NAME, 'ms', costs, { atMost: 6 }),
      figure(
        'starts that it took',
        '/s',
        rounds.map(({ startsPerSecond }) => startsPerSecond),
      ),
    ];
  },
};

interface Round {
  /** Null on a system without /proc. */
  readonly processorMsPerRun: number | null;
  /** The rate at which the service took the starts. */
  readonly startsPerSecond: number;
}

/** @param start starts the service, this one or an earlier one */
export async function httpModelsRound(
  start: typeof startServiceProcess,
  { warmUpSeconds, httpSeconds, startsPerSecond = STARTS_PER_SECOND }: HttpEffort,
  flags: readonly string[] = [],
): Promise<Round> {
  const models = fork(fileURLToPath(new URL('./slow-model-process.js', import.meta.url)));
  const port = await numberFrom(models);
  const dir = tempDir();
  const service = await start(dir.path, { flags, environment: environmentAt(port) });
  try {
    const warmUp = Math.max(1, Math.round(warmUpSeconds * startsPerSecond));
    await started(service.url, { runs: warmUp, startsPerSecond });
    await answered(models, CALLS_A_RUN * warmUp);
    const before = processorMs(service.pid);
    const runs = Math.max(1, Math.round(httpSeconds * startsPerSecond));
    const took = await started(service.url, { runs, startsPerSecond });
    await answered(models, CALLS_A_RUN * (warmUp + runs));
    const after = processorMs(service.pid);
    const processorMsPerRun = before === null || after === null ? null : (after - before) / runs;
    return { processorMsPerRun, startsPerSecond: took };
  } finally {
    await service.stop();
    models.disconnect();
    dir.remove();
  }
}

type HttpEffort = Pick<Effort, 'warmUpSeconds' | 'httpSeconds'> & { readonly startsPerSecond?: number };

function environmentAt(port: number): Readonly<Record<string, string>> {
  return {
    MODEL_PROVIDER: 'openai',
    OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
    OPENAI_API_KEY: 'none',
    OPENAI_MODEL: 'slow',
    MAX_MODEL_CALLS: '10000',
    MAX_ACTIVE_RUNS: '10000',
    MAX_RUNS_PER_MINUTE: '0',
    LOG_LEVEL: 'warn',
  };
}

/** Starts runs at a constant rate, whatever the service does. Returns the starts per second that the service took. */
async function started(
  url: string,
  { runs, startsPerSecond }: { readonly runs: number; readonly startsPerSecond: number },
): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({ input_topic: 'The sea' });
  const from = performance.now();
  const starting: Promise<unknown>[] = [];
  while (starting.length < runs) {
    const due = Math.min(runs, Math.ceil(((performance.now() - from) / 1_000) * startsPerSecond));
    while (starting.length < due) starting.push(exchange(agent, `${url}/api/councils/run`, body));
    await delay(5);
  }
  await Promise.all(starting);
  agent.destroy();
  return runs / ((performance.now() - from) / 1_000);
}

/** Resolves soon after the model server has answered so many calls, when the last run has ended. */
async function answered(models: ChildProcess, calls: number): Promise<void> {
  const untilMs = performance.now() + DEADLINE_MS;
  for (let done = -1; done < calls; await delay(POLL_MS)) {
    if (performance.now() > untilMs) throw new Error(`The model server answered ${done} calls, not ${calls}`);
    const counted = numberFrom(models);
    models.send('calls');
    done = await counted;
  }
}

async function numberFrom(models: ChildProcess): Promise<number> {
  const sent: readonly unknown[] = await once(models, 'message');
  return Number(sent[0]);
}

/** Of the built-in council, when its critic approves the first draft. */
const CALLS_A_RUN = 3;

/** Longest time from the last start to the end of the last run. */
const DEADLINE_MS = 60_000;

/** Between two questions for the calls that are answered; long enough for the end of a run after its last one. */
const POLL_MS = 250;
