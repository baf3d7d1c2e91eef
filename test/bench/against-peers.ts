/**
 * The engine beside frameworks that a user could take instead, and beside a loop written for this council alone:
 * `npm run bench:peers`. Installs the frameworks in a folder of dist. Prints a Markdown table.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { contest, figuresOf } from './contest.js';
import { FULL_EFFORT, QUICK_EFFORT } from './figure.js';
import { machineLine } from './machine.js';
import { tableOf } from './table.js';

const SOURCES = new URL('../../../test/bench/peers/', import.meta.url);
const FOLDER = new URL('../../peers/', import.meta.url);
const ENGINE = { name: 'engine', module: new URL('engine-contestant.js', import.meta.url) };
const PEERS = [
  { name: 'LangGraph.js', module: new URL('langgraph.mjs', FOLDER) },
  { name: 'Mastra', module: new URL('mastra.mjs', FOLDER) },
  { name: 'hand-written loop', module: new URL('hand-written.js', import.meta.url) },
];
const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const effort = values.quick ? QUICK_EFFORT : FULL_EFFORT;
install();
const machine = machineLine();
const results = await contest([ENGINE, ...PEERS], effort);
process.stdout.write(
  `${machine}\n\nMedian of ${effort.contestRounds} rounds, in turns of ${effort.contestSeconds} s of processor time.\n\n` +
    `${tableOf(figuresOf(results))}\n`,
);

/** Keeps an earlier install of the same packages. */
function install(): void {
  const ready = new URL('ready', FOLDER);
  const packages = readFileSync(new URL('package.json', SOURCES), 'utf8');
  cpSync(SOURCES, FOLDER, { recursive: true });
  if (existsSync(ready) && readFileSync(ready, 'utf8') === packages) return;
  rmSync(ready, { force: true });
  npm('install', '--no-package-lock', '--ignore-scripts', '--include=optional');
  // npm downloads its binary or compiles it. The other packages need no script.
  npm('rebuild', 'better-sqlite3', '--ignore-scripts=false');
  writeFileSync(ready, packages);
}

function npm(...args: readonly string[]): void {
  execFileSync('npm', args, { cwd: fileURLToPath(FOLDER), stdio: ['ignore', 2, 2] });
}
