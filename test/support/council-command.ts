/** The `council` command as a child process, as a user types it. */
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { RunResult } from '../../src/generated/schemas.js';
import { COMMANDS } from '../../src/cli/command-table.js';
import type { CommandProcess } from '../../src/cli/commands/command.js';
import { schemaCheck } from './schema-check.js';
import type { Child, ChildExit } from './child.js';
import { startChild } from './child.js';
import type { TempDir } from './temp-dir.js';
import { tempDir } from './temp-dir.js';
import { eventStoreEnvironment } from './test-event-store.js';

export const COUNCIL = fileURLToPath(new URL('../../../src/cli/council.mjs', import.meta.url));

export interface Given {
  /** Environment in addition to PATH and the DATA_DIR of the bench. */
  readonly env?: Readonly<Record<string, string>>;
  /** All of its standard input. */
  readonly input?: string;
}

/** Runs `council` commands in a new folder, and ends everything that it started. */
export interface CouncilBench {
  readonly path: string;
  /** The data directory of its commands, not created yet. */
  readonly dataDir: string;
  /** Starts `council run` as a process. Without an input, standard input stays open. */
  start(words: readonly string[], given?: Given): Child;
  /** Runs `council run` to its end in this process. Default input: empty. */
  run(words: readonly string[], given?: Given): Promise<ChildExit>;
  /** Runs any `council` command but `serve` to its end in this process. Default input: empty. */
  council(words: readonly string[], given?: Given): Promise<ChildExit>;
  /** Runs any `council` command to its end as a process. Default input: empty. */
  command(words: readonly string[], given?: Given): Promise<ChildExit>;
  /** Starts any program in the environment of the commands. */
  program(command: string, words: readonly string[], given?: Given): Child;
  /** Copies a folder into the folder of the bench under a name. Returns its path. */
  copied(folder: string, name: string): string;
  /** Writes a file; returns its path. */
  written(name: string, text: string): string;
  /** Writes a file with a blueprint: the poet writes, the reader improves; two pauses. */
  pair(): string;
  /** Ends everything and removes the folder. */
  clear(): Promise<void>;
}

export function councilBench(): CouncilBench {
  const dir: TempDir = tempDir();
  const children: Child[] = [];
  const dataDir = join(dir.path, 'data');
  const environment = { DATA_DIR: dataDir, ...eventStoreEnvironment(dataDir) };
  const program: CouncilBench['program'] = (command, words, { env = {}, input } = {}) => {
    // Another folder holds an embedded log, unless the test names a server.
    const own = env['DATA_DIR'] === undefined ? environment : {};
    const all = { PATH: process.env['PATH'], ...own, ...env };
    const child = startChild(command, words, all, input ?? null);
    children.push(child);
    return child;
  };
  const start: CouncilBench['start'] = (words, given) => program(process.execPath, [COUNCIL, 'run', ...words], given);
  const written = (name: string, text: string): string => {
    const file = join(dir.path, name);
    writeFileSync(file, text);
    return file;
  };
  const pair = {
    name: 'Pair',
    nodes: [{ id: 'poet' }, { id: 'reader' }],
    edges: [{ source: 'poet', target: 'reader' }],
  };
  return {
    path: dir.path,
    dataDir,
    start,
    run: (words, given) => commandHere(['run', ...words], { ...given, env: { ...environment, ...given?.env } }),
    council: (words, given) => commandHere(words, { ...given, env: { DATA_DIR: dataDir, ...given?.env } }),
    command: (words, given) => program(process.execPath, [COUNCIL, ...words], { input: '', ...given }).exit,
    program,
    copied(folder, name) {
      const copy = join(dir.path, name);
      cpSync(folder, copy, { recursive: true });
      return copy;
    },
    written,
    pair: () => written('pair.json', JSON.stringify(pair)),
    async clear() {
      await Promise.all(children.map((child) => child.kill()));
      dir.remove();
    },
  };
}

/** Runs a command to its end in this process. @param given all of its environment @param parts in place of usual ones */
export async function commandHere(
  words: readonly string[],
  { env = {}, input = '' }: Given,
  parts: Partial<CommandProcess> = {},
): Promise<ChildExit> {
  const output = { stdout: '', stderr: '' };
  const decoder = new TextDecoder();
  const textIn = (text: string | Uint8Array): string =>
    typeof text === 'string' ? text : decoder.decode(text, { stream: true });
  const command = await COMMANDS.find(({ name }) => name === words[0])?.load?.();
  if (command === undefined) throw new Error(`There is no command "${words[0]}"`);
  const code = await command(words, {
    env,
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
    stdout: {
      write(text, done) {
        output.stdout += textIn(text);
        done();
      },
    },
    stderr: {
      isTTY: false,
      columns: 80,
      write(text: string | Uint8Array) {
        output.stderr += textIn(text);
        return true;
      },
    },
    signal: new AbortController().signal,
    exit: (exitCode) => {
      throw new Error(`This command has ended its process with ${exitCode}`);
    },
    ...parts,
  });
  return { code, signal: null, ...output };
}

/** Runs `council keys` to its end in this process. @param env all of its environment */
export function councilKeys(words: readonly string[], env: Readonly<Record<string, string>>): Promise<ChildExit> {
  return commandHere(['keys', ...words], { env });
}

/** The output of `--json`. */
export function resultIn({ stdout }: Pick<ChildExit, 'stdout'>): RunResult {
  const value: unknown = JSON.parse(stdout);
  if (schemaCheck('run-result.json')(value)) return value;
  throw new Error(`${stdout} is no run result`);
}
