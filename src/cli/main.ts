/** The `council` command: finds the command that the first word names and runs it in this process. */
import { readFileSync } from 'node:fs';
import { ignoreDebuggers, onSignals } from '../system/signals.js';
import { nodeSystem } from '../system/system.js';
import { fieldOf } from '../system/untrusted.js';
import type { CommandRow } from './command-table.js';
import { COMMANDS, USAGE } from './command-table.js';
import type { Command } from './commands/command.js';
import { EXIT, exitOfError, messageOf } from './commands/exit-codes.js';
import { printable } from './terminal/printer.js';

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  const [name = '', ...rest] = words;
  const row = COMMANDS.find((each) => each.name === name && (each.words !== null || rest.length === 0));
  if (row !== undefined) {
    if (row.load === null) await import('../main.js');
    else await runHere(await row.load(), row, words);
  } else if ([name, ...rest.slice(0, 1)].some((word) => ['help', '--help', '-h'].includes(word))) {
    process.stdout.write(COMMANDS.find((each) => each.name === name)?.help ?? USAGE);
  } else if (name === '--version') {
    process.stdout.write(`${versionOf(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))}\n`);
  } else {
    process.stderr.write(`${faultOf(name)}\n\n${USAGE}`);
    process.exitCode = EXIT.usage;
  }
}

/** Why the words are wrong. */
function faultOf(name: string): string {
  if (name === '') return 'A command is missing';
  const isKnown = COMMANDS.some((each) => each.name === name);
  return isKnown ? `council ${name} takes no words` : `There is no command "${printable(name)}"`;
}

/** Runs a command in this process. An unhandled error ends it with the exit code of the command's own errors. */
async function runHere(
  command: Command,
  { onSecondSignal, exitOnError }: Pick<CommandRow, 'onSecondSignal' | 'exitOnError'>,
  words: readonly string[],
): Promise<void> {
  ignoreDebuggers();
  const { env, stdin, stdout, stderr } = process;
  const stopping = new AbortController();
  if (onSecondSignal !== null) {
    onSignals(
      nodeSystem(),
      () => stopping.abort(),
      () => process.exit(onSecondSignal),
    );
  }
  process.on('uncaughtException', (error) => {
    stderr.write(`${printable(messageOf(error, { usage: '', takesUrl: false }))}\n`);
    process.exit(exitOnError ?? exitOfError(error));
  });
  // The write that fails reports the error itself.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  const exit = (code: number): void => process.exit(code);
  process.exitCode = await command(words, { env, stdin, stdout, stderr, signal: stopping.signal, exit });
}

function versionOf(packageJson: string): string {
  return String(fieldOf(JSON.parse(packageJson), 'version'));
}
