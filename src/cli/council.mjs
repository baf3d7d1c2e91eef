#!/usr/bin/env node
/** The `council` command: works in a fresh clone, because it builds when dist is stale. Runs in this one process. */
import { build } from '../build.mjs';

const USAGE = 'Usage: council serve';

const [command, ...rest] = process.argv.slice(2);
if (command === 'serve' && rest.length === 0) {
  await build(['src']);
  await import('../../dist/src/main.js');
} else {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
}
