/** A data directory with finished runs in it. */
import type { LanguageModel } from '../../src/models/port.js';
import { openBenchEngine } from './bench-engine.js';
import { bounded, closedLoop } from './closed-loop.js';

const AT_ONCE = 50;

/** Runs the fixed graph in a folder until so many runs are finished, or the time is over; returns how many are. */
export async function filled(
  path: string,
  { model, runs, seconds }: { readonly model: LanguageModel; readonly runs: number; readonly seconds: number },
): Promise<number> {
  const engine = await openBenchEngine({ path, model });
  try {
    const goesOn = bounded({ seconds, acts: runs });
    return (await closedLoop({ clients: AT_ONCE, goesOn, act: () => engine.run() })).acts;
  } finally {
    await engine.stop();
  }
}
