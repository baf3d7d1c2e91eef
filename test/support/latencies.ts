import { nodeSystem } from '../../src/system/system.js';
import { wait } from '../../src/system/async/deadline.js';

/** Wait between two requests in milliseconds, so that the requests themselves cause little load. */
const PAUSE_MS = 20;

/** Sends requests one after the other until the signal. Returns the duration of each in milliseconds. */
export async function latencies(ask: () => Promise<unknown>, signal: AbortSignal): Promise<readonly number[]> {
  const taken: number[] = [];
  while (!signal.aborted) {
    const from = performance.now();
    await ask();
    taken.push(performance.now() - from);
    await wait(nodeSystem(), PAUSE_MS, signal);
  }
  return taken;
}
