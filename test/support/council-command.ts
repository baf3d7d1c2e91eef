/** The `council` command as a child process, as a user types it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const COUNCIL = fileURLToPath(new URL('../../../src/cli/council.mjs', import.meta.url));

export interface CouncilExit {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CouncilCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CouncilExit>;
  /** Resolves with standard error once it fits; rejects when the process ends before. */
  untilTold(fits: RegExp): Promise<string>;
}

/** Starts the command in a clean environment; `input` is all of its standard input, left open when undefined. */
export function council(
  words: readonly string[],
  { env = {}, input }: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): CouncilCommand {
  const child = spawn(process.execPath, [COUNCIL, ...words], { env: { PATH: process.env['PATH'], ...env } });
  const told = { stdout: '', stderr: '' };
  const looks = new Set<() => void>();
  child.stdout.on('data', (chunk: Buffer) => (told.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => {
    told.stderr += chunk.toString();
    for (const look of looks) look();
  });
  child.stdin.on('error', () => undefined);
  if (input !== undefined) child.stdin.end(input);
  const ended = new Promise<CouncilExit>((resolve) => child.on('close', (code) => resolve({ code, ...told })));
  return {
    child,
    ended,
    untilTold: (fits) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (fits.test(told.stderr)) resolve(told.stderr);
        };
        looks.add(look);
        look();
        void ended.then(() => reject(new Error(`The command ended after: ${told.stderr}`)));
      }),
  };
}
