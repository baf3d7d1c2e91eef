/** The service under polling clients. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { instantModel } from '../support/instant-model.js';
import { startService } from '../support/running-service.js';
import type { Effort, Part } from './figure.js';
import { figure } from './figure.js';
import type { RestOrder, RestReport } from './rest-clients-process.js';

const CLIENTS = 100;
const POLL_MS = 20;

const TARGET_RUNS = { atLeast: 500 };

export const restPart: Part = {
  name: 'rest',
  method: ({ rounds, restSeconds }) =>
    `The real service with the instant model in this process, ${CLIENTS} clients in another one on the same machine. Each ` +
    `starts a run, polls it every ${POLL_MS} ms until it is completed, and starts the next; ${rounds} rounds of ` +
    `${restSeconds} s, each on a new data directory.`,
  async measure(effort) {
    const rounds: RestReport[] = [];
    for (let i = 0; i < effort.rounds; i += 1) rounds.push(await round(effort));
    const of = (value: (round: RestReport) => number): readonly number[] => rounds.map(value);
    const [runs, p50, p99] = [of((each) => each.runsPerSecond), of((each) => each.p50Ms), of((each) => each.p99Ms)];
    const prefix = `REST, ${CLIENTS} polling clients:`;
    return [
      figure(`${prefix} completed runs`, '/s', runs, TARGET_RUNS),
      figure(`${prefix} from start to completed, p50`, 'ms', p50),
      figure(`${prefix} from start to completed, p99`, 'ms', p99),
    ];
  },
};

async function round({ warmUpSeconds, restSeconds }: Effort): Promise<RestReport> {
  const service = await startService({ model: instantModel() });
  try {
    const order = { url: service.url, clients: CLIENTS, pollMs: POLL_MS, warmUpSeconds, seconds: restSeconds };
    return await clientsOf(order);
  } finally {
    await service.stop();
  }
}

function clientsOf(order: RestOrder): Promise<RestReport> {
  const file = fileURLToPath(new URL('./rest-clients-process.js', import.meta.url));
  return new Promise((resolve, reject) => {
    const child = fork(file, [JSON.stringify(order)]);
    let report: RestReport | null = null;
    // It sends one message, typed where it is sent.
    child.on('message', (message) => (report = message as RestReport));
    child.on('error', reject);
    child.on('close', (code) => {
      if (report === null) reject(new Error(`The clients ended with code ${String(code)} and no report`));
      else resolve(report);
    });
  });
}
