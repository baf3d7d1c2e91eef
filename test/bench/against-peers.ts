/**
 * The engine beside frameworks that one could take instead: `npm run bench:peers`. Installs them in a folder of dist,
 * where nothing else finds them, when that is not up to date. Prints a Markdown table.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { contest, figuresOf } from './contest.js';
import { FULL_EFFORT, QUICK_EFFORT } from './effort.js';
import { machineLine } from './machine.js';
import { tableOf } from './table.js';
import { ENGINE } from './yardstick.js';

const SOURCES = new URL('../../../test/bench/peers/', import.meta.url);
const FOLDER = new URL('../../peers/', import.meta.url);
const PEERS = [
  { name: 'LangGraph.js', module: new URL('langgraph.mjs', FOLDER) },
  { name: 'Mastra', module: new URL('mastra.mjs', FOLDER) },
];
/** Issue 18, "Targets". */
const TARGETS = new Map([
  [1, { atLeast: 5 }],
  [50, { atLeast: 15 }],
  [500, { atLeast: 15 }],
]);

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const effort = values.quick ? QUICK_EFFORT : FULL_EFFORT;
install();
const machine = machineLine();
const results = await contest([ENGINE, ...PEERS], effort);
process.stdout.write(
  `${machine}\n\nMedian of ${effort.contestRounds} rounds in turns of ${effort.contestSeconds} s of processor time.\n\n` +
    `${tableOf(figuresOf(results, { unit: 'x', targets: TARGETS }))}\n`,
);

function install(): void {
  const installed = lockIn(FOLDER);
  cpSync(SOURCES, FOLDER, { recursive: true });
  if (installed === lockIn(SOURCES) && existsSync(new URL('ready', FOLDER))) return;
  rmSync(new URL('ready', FOLDER), { force: true });
  npm('ci', '--ignore-scripts', '--include=optional');
  // Its binary is fetched, or compiled; no other package of these runs anything when it is installed.
  npm('rebuild', 'better-sqlite3', '--ignore-scripts=false');
  writeFileSync(new URL('ready', FOLDER), '');
}

function npm(...args: readonly string[]): void {
  execFileSync('npm', args, { cwd: fileURLToPath(FOLDER), stdio: ['ignore', 2, 2] });
}

function lockIn(folder: URL): string {
  const lock = new URL('package-lock.json', folder);
  return existsSync(lock) ? readFileSync(lock, 'utf8') : '';
}
