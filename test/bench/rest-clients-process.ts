/** REST clients in a process of their own: sends a report to the parent process, and ends. */
import { bounded } from './closed-loop.js';
import { restLoad } from './rest-clients.js';
import { percentile } from './statistics.js';

export interface RestOrder {
  readonly url: string;
  readonly clients: number;
  readonly pollMs: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface RestReport {
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const [, , text = ''] = process.argv;
// Written by rest.ts, which alone starts this.
const order = JSON.parse(text) as RestOrder;
await restLoad({ ...order, goesOn: bounded({ seconds: order.warmUpSeconds }) });
const { acts, elapsedMs, latenciesMs } = await restLoad({ ...order, goesOn: bounded(order) });
process.send?.({
  runsPerSecond: acts / (elapsedMs / 1_000),
  p50Ms: percentile(latenciesMs, 0.5),
  p99Ms: percentile(latenciesMs, 0.99),
} satisfies RestReport);
