#!/usr/bin/env node
/** The `council` command: works in a fresh clone, because it builds when dist is stale. Runs in this one process. */
import { readFileSync } from 'node:fs';
import { build } from '../build.mjs';

const USAGE = `Usage: council serve
       council run "<topic>" [options]   (council run --help tells them)
       council events | tail | state | diff | verify | fork | export RUN …   (council verify --help tells them)
       council migrate                  (copies the log in DATA_DIR to EVENTSTORE_URL; the service is stopped)
       council --help | --version`;

const AUDIT = ['events', 'tail', 'state', 'diff', 'verify', 'fork', 'export'];

const [command = '', ...rest] = process.argv.slice(2);
if (command === 'serve' && rest.length === 0) {
  await start('main.js');
} else if (command === 'run') {
  await start('cli/commands/run.js');
} else if (AUDIT.includes(command)) {
  await start('cli/commands/audit.js').catch((fault) => {
    process.stderr.write(`${fault.stack}\n`);
    // Of verify 1 would mean that a record is not valid.
    process.exitCode = command === 'verify' ? 2 : 1;
  });
} else if (command === 'migrate' && rest.length === 0) {
  await start('cli/commands/migrate.js');
} else if (['help', '--help', '-h'].includes(command)) {
  process.stdout.write(`${USAGE}\n`);
} else if (command === '--version') {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  process.stdout.write(`${version}\n`);
} else {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
}

async function start(program) {
  await build(['src']);
  await import(`../../dist/src/${program}`);
}
