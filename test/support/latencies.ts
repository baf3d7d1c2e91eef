import { nodeSystem } from '../../src/system/system.js';
import { wait } from '../../src/system/async/deadline.js';

/** Between two requests, in milliseconds: what is measured should not be their own load. */
const PAUSE_MS = 20;

/** How long each of many requests took, one after the other until the signal, in milliseconds. */
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
