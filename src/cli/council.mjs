#!/usr/bin/env node
/** The `council` command: works in a fresh clone, because it builds when dist is stale. Runs in this one process. */
import { build } from '../build.mjs';

const USAGE = 'Usage: council serve\n       council run "<topic>" [options]   (council run --help tells them)';

const [command, ...rest] = process.argv.slice(2);
if (command === 'serve' && rest.length === 0) {
  await start('main.js');
} else if (command === 'run') {
  await start('cli/main.js');
} else if (command === '--help' || command === '-h') {
  process.stdout.write(`${USAGE}\n`);
} else {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
}

async function start(program) {
  await build(['src']);
  await import(`../../dist/src/${program}`);
}
