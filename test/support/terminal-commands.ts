/**
 * Executes `council` commands one after the other, in one process on a terminal: `node terminal-commands.js COMMANDS`,
 * where COMMANDS is JSON: the words of each command and the changes of its environment. After each command it prints a
 * line with END and the exit code.
 */
import { fileURLToPath } from 'node:url';
import { COMMANDS } from '../../src/cli/command-table.js';

export interface TerminalCommand {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export const TERMINAL_COMMANDS = fileURLToPath(import.meta.url);
export const END = '=== exit';

if (process.argv[1] === TERMINAL_COMMANDS) {
  for (const { words, env } of JSON.parse(process.argv[2] ?? '[]') as readonly TerminalCommand[]) {
    const { stdin, stdout, stderr, exit } = process;
    const { signal } = new AbortController();
    const command = await COMMANDS.find(({ name }) => name === words[0])?.load?.();
    const code = await command?.(words, { stdin, stdout, stderr, exit, signal, env: { ...process.env, ...env } });
    stdout.write(`${END} ${code}\n`);
  }
}
