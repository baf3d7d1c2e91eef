/**
 * Compares versions of the engine: `node dist/test/bench/compare.js CONCURRENT FOLDER FOLDER…`, each folder a built
 * working tree, the first the one to compare with. All run in this process, in short turns, so that other load of the
 * machine meets all of them. Prints the median of each version's turns, and of their ratios to the first.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { elementAt } from '../../src/system/element.js';
import { tempDir } from '../support/temp-dir.js';
import { instantModel } from '../support/instant-model.js';
import type { openBenchEngine } from './bench-engine.js';
import { closedLoop } from './closed-loop.js';
import { percentile } from './statistics.js';

const TURNS = 20;
const RUNS_A_TURN = 300;
/** Turns before the first measured one, in which V8 compiles the code. */
const WARM_UP_TURNS = 3;
/** Pause between two turns, in which the rows of the last are written. */
const REST_MS = 150;

/** Milliseconds per run in a turn. */
interface Turn {
  readonly 'main thread': number;
  readonly 'all threads': number;
  readonly 'time on the clock': number;
}

const [, , atOnce = '50', ...folders] = argv;
const versions = await Promise.all(folders.map(opened));
for (let turn = -WARM_UP_TURNS; turn < TURNS; turn += 1) {
  // The order alternates.
  for (const version of turn % 2 === 0 ? versions : versions.toReversed()) {
    const took = await turnOf(version.run);
    if (turn >= 0) version.turns.push(took);
  }
}
for (const { folder, turns } of versions) process.stdout.write(`${folder}: ${summary(turns)}\n`);
for (const { close } of versions) await close();

async function opened(folder: string) {
  const module: unknown = await import(pathToFileURL(join(folder, 'dist/test/bench/bench-engine.js')).href);
  const { openBenchEngine: open } = module as { readonly openBenchEngine: typeof openBenchEngine };
  const dir = tempDir();
  const engine = await open({ path: dir.path, model: instantModel() });
  const close = async (): Promise<void> => {
    await engine.stop();
    dir.remove();
  };
  const turns: Turn[] = [];
  return { folder, run: () => engine.run(), turns, close };
}

async function turnOf(act: () => Promise<void>): Promise<Turn> {
  const [main, all] = [mainThreadMs(), process.cpuUsage()];
  const { acts, elapsedMs } = await closedLoop({ clients: Number(atOnce), goesOn: (acts) => acts < RUNS_A_TURN, act });
  await delay(REST_MS);
  const { user, system } = process.cpuUsage(all);
  return {
    'main thread': (mainThreadMs() - main) / acts,
    'all threads': (user + system) / 1_000 / acts,
    'time on the clock': elapsedMs / acts,
  };
}

/** Processor time of this thread so far (proc(5): its first field, in nanoseconds). */
function mainThreadMs(): number {
  const text = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8');
  return Number(text.split(' ')[0]) / 1e6;
}

function summary(turns: readonly Turn[]): string {
  const first = elementAt(versions, 0).turns;
  const parts = (['main thread', 'all threads', 'time on the clock'] as const).map((what) => {
    const ms = percentile(
      turns.map((turn) => turn[what]),
      0.5,
    );
    const ratio = percentile(
      turns.map((turn, at) => turn[what] / elementAt(first, at)[what]),
      0.5,
    );
    return `${what} ${ms.toFixed(3)} ms per run (${ratio.toFixed(2)})`;
  });
  return parts.join(', ');
}
