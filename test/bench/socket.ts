/** How long what is recorded takes to reach who follows a run. */
import type { Effort, Part } from './figure.js';
import { figure } from './figure.js';
import type { SocketLoad } from './socket-load.js';
import { socketLoad } from './socket-load.js';
import { percentile } from './statistics.js';

const RUNS_PER_SECOND = 100;

/** Issue 3, "What it must show". */
const TARGET_P99 = { atMost: 10 };

export const socketPart: Part = {
  name: 'socket',
  method: ({ socketSeconds }) =>
    `The real service with the instant model, ${RUNS_PER_SECOND} runs/s started evenly over REST for ${socketSeconds} s, each ` +
    `followed by a socket; service, clients and sockets share one process and its clock, and one event loop, so the ` +
    `clients' work is in the figures. A run's first answer waits until its socket is open. Latency is from the ` +
    `acknowledgement of the append by the log to the arrival of the message it causes.`,
  async measure(effort) {
    await socketLoad({ runsPerSecond: RUNS_PER_SECOND, seconds: effort.warmUpSeconds });
    const load = await socketLoad({ runsPerSecond: RUNS_PER_SECOND, seconds: effort.socketSeconds });
    return figuresOf(load, effort);
  },
};

function figuresOf({ latenciesMs, loopDelayP99Ms, runsPerSecond }: SocketLoad, { socketSeconds }: Effort) {
  const at = `${RUNS_PER_SECOND} runs/s for ${socketSeconds} s:`;
  return [
    figure(`${at} runs completed`, '/s', [runsPerSecond]),
    figure(`${at} append to socket, p50`, 'ms', [percentile(latenciesMs, 0.5)]),
    figure(`${at} append to socket, p99`, 'ms', [percentile(latenciesMs, 0.99)], TARGET_P99),
    figure(`${at} append to socket, slowest of ${latenciesMs.length}`, 'ms', [percentile(latenciesMs, 1)]),
    figure(`${at} event-loop delay p99`, 'ms', [loopDelayP99Ms]),
  ];
}
