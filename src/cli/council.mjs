#!/usr/bin/env node
/** The `council` command: works in a fresh clone, because it builds when dist is stale. Runs in this one process. */
import { readFileSync } from 'node:fs';
import { makeConsoleLater, transpile } from '../build.mjs';

/** Each row is a line of the usage, and the program that is started for its names; `isBare`: it takes no arguments. */
const COMMANDS = [
  { names: ['serve'], usage: '', program: 'main.js', isBare: true },
  {
    names: ['run'],
    usage: '"<topic>" [options]   (council run --help tells them)',
    program: 'cli/commands/run-process.js',
  },
  {
    names: ['events', 'tail', 'state', 'diff', 'verify', 'fork', 'export'],
    usage: 'RUN …   (council verify --help tells them)',
    program: 'cli/commands/audit-process.js',
  },
  {
    names: ['keys'],
    usage: 'add NAME --scopes … | list | revoke NAME   (council keys --help tells them)',
    program: 'cli/commands/keys-process.js',
  },
  {
    names: ['migrate'],
    usage: '                 (copies the log in DATA_DIR to EVENTSTORE_URL; the service is stopped)',
    program: 'cli/commands/migrate.js',
    isBare: true,
  },
  {
    names: ['check'],
    usage: '[--accept-loss]   (tells whether the log in DATA_DIR is whole; the service is stopped)',
    program: 'cli/commands/check.js',
  },
  {
    names: ['salvage'],
    usage: '--to DIR         (writes what is whole of a damaged log into a new one; the service is stopped)',
    program: 'cli/commands/salvage.js',
  },
];

const LINES = COMMANDS.map(({ names, usage }) => `${names.join(' | ')} ${usage}`.trimEnd());
const USAGE = `Usage: ${[...LINES, '--help | --version'].map((line) => `council ${line}`).join('\n       ')}\n`;

const [name = '', ...rest] = process.argv.slice(2);
const command = COMMANDS.find(({ names, isBare }) => names.includes(name) && !(isBare && rest.length > 0));
if (command !== undefined) {
  await start(command.program);
} else if ([name, ...rest.slice(0, 1)].some((word) => ['help', '--help', '-h'].includes(word))) {
  process.stdout.write(USAGE);
} else if (name === '--version') {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  process.stdout.write(`${version}\n`);
} else {
  process.stderr.write(USAGE);
  process.exitCode = 2;
}

async function start(program) {
  try {
    await transpile(['src']);
    if (program === 'main.js') makeConsoleLater();
    await import(`../../dist/src/${program}`);
  } catch (fault) {
    process.stderr.write(`${fault.stack}\n`);
    // Of verify 1 would mean that a record is not valid.
    process.exitCode = name === 'verify' ? 2 : 1;
  }
}
