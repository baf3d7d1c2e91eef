/** The `council` command: one row a command. Each is loaded when it is called, and gets its process handed in. */
import { readFileSync } from 'node:fs';
import { onSignals } from '../system/signals.js';
import { nodeSystem } from '../system/system.js';
import { fieldOf } from '../system/untrusted.js';
import type { Command } from './commands/command.js';
import { EXIT, exitOfError, messageOf } from './commands/exit-codes.js';
import { printable } from './terminal/printer.js';

interface CommandRow {
  readonly names: readonly string[];
  /** What follows its names in the usage. */
  readonly usage: string;
  readonly takesWords: boolean;
  /** Null: the service, a program that starts when it is loaded and ends by its own rules. */
  readonly command: Command | null;
  /** Exit code when a signal that aborts the command is repeated; null: the first ends the process. */
  readonly forced: number | null;
}

const COMMANDS: readonly CommandRow[] = [
  { names: ['serve'], usage: '', takesWords: false, command: null, forced: null },
  {
    names: ['run'],
    usage: '"<topic>" [options]   (council run --help tells them)',
    takesWords: true,
    command: async (...given) => (await import('./commands/run.js')).run(...given),
    forced: EXIT.failed,
  },
  {
    names: ['events', 'tail', 'state', 'diff', 'verify', 'fork', 'export'],
    usage: 'RUN …   (council verify --help tells them)',
    takesWords: true,
    command: async (...given) => (await import('./commands/audit.js')).audit(...given),
    forced: EXIT.interrupted,
  },
  {
    names: ['keys'],
    usage: 'add NAME --scopes … | list | revoke NAME   (council keys --help tells them)',
    takesWords: true,
    command: async (...given) => (await import('./commands/keys.js')).keys(...given),
    forced: EXIT.interrupted,
  },
  {
    names: ['migrate'],
    usage: '                 (copies the log in DATA_DIR to EVENTSTORE_URL; the service is stopped)',
    takesWords: false,
    command: async (...given) => (await import('./commands/migrate.js')).migrate(...given),
    forced: EXIT.failed,
  },
  {
    names: ['check'],
    usage: '[--accept-loss]   (tells whether the log in DATA_DIR is whole; the service is stopped)',
    takesWords: true,
    command: async (...given) => (await import('./commands/check.js')).check(...given),
    forced: null,
  },
  {
    names: ['salvage'],
    usage: '--to DIR         (writes what is whole of a damaged log into a new one; the service is stopped)',
    takesWords: true,
    command: async (...given) => (await import('./commands/salvage.js')).salvage(...given),
    forced: null,
  },
];

const LINES = COMMANDS.map(({ names, usage }) => `${names.join(' | ')} ${usage}`.trimEnd());
const USAGE = `Usage: ${[...LINES, '--help | --version'].map((line) => `council ${line}`).join('\n       ')}\n`;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  const [name = '', ...rest] = words;
  const row = COMMANDS.find(({ names, takesWords }) => names.includes(name) && (takesWords || rest.length === 0));
  if (row !== undefined) {
    if (row.command === null) await import('../main.js');
    else await runHere(row.command, { words, forced: row.forced });
  } else if ([name, ...rest.slice(0, 1)].some((word) => ['help', '--help', '-h'].includes(word))) {
    process.stdout.write(USAGE);
  } else if (name === '--version') {
    process.stdout.write(`${versionOf(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))}\n`);
  } else {
    process.stderr.write(USAGE);
    process.exitCode = EXIT.usage;
  }
}

/** Runs a command in this process; an error that nobody awaits ends it with the exit code of the command's own errors. */
async function runHere(
  command: Command,
  { words, forced }: Pick<CommandRow, 'forced'> & { readonly words: readonly string[] },
): Promise<void> {
  const { env, stdin, stdout, stderr } = process;
  const stopping = new AbortController();
  if (forced !== null) {
    onSignals(
      nodeSystem(),
      () => stopping.abort(),
      () => process.exit(forced),
    );
  }
  process.on('uncaughtException', (error) => {
    stderr.write(`${printable(messageOf(error, ''))}\n`);
    // Of verify 1 would mean that a record is not valid.
    process.exit(exitOfError(error, words[0] === 'verify' ? 'verify' : null));
  });
  // A failed write is reported where it happens.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  const exit = (code: number): void => process.exit(code);
  process.exitCode = await command(words, { env, stdin, stdout, stderr, signal: stopping.signal, exit });
}

function versionOf(packageJson: string): string {
  return String(fieldOf(JSON.parse(packageJson), 'version'));
}
