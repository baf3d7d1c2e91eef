/** A child process whose output lines a test can wait for. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** All output. */
  readonly stdout: string;
  readonly stderr: string;
}

export interface Child {
  readonly pid: number | undefined;
  /** Lines on standard output so far. */
  readonly lines: readonly string[];
  /** Text on standard error so far. */
  stderrText(): string;
  /** Resolves when a condition on the lines holds; rejects with standard error if the process ends before. */
  waitFor(condition: (lines: readonly string[]) => boolean): Promise<void>;
  /** Resolves with standard error when it matches; rejects if the process ends before. */
  waitForStderr(fits: RegExp): Promise<string>;
  /** Writes to its open standard input. */
  writeInput(input: string): void;
  /** Sends a signal. */
  signal(name: NodeJS.Signals): void;
  /** Sends SIGKILL; resolves when the process has ended and its last line is read. */
  kill(): Promise<void>;
  /** Resolves with the exit code when it has ended. */
  readonly ended: Promise<number | null>;
  /** Resolves with exit code, signal and output when it has ended. */
  readonly exit: Promise<ChildExit>;
}

/** Starts a program. @param env this process's environment by default @param input null leaves standard input open */
export function startChild(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
  input: string | null = '',
): Child {
  const child = spawn(command, args, { env });
  const lines: string[] = [];
  const output = { stdout: '', stderr: '' };
  const looks = new Set<() => void>();
  const look = (): void => {
    for (const each of looks) each();
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    look();
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
    look();
  });
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined);
  if (input !== null) child.stdin.end(input);
  const exit = exitOf(child, output);
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (!holds()) return;
        looks.delete(check);
        resolve();
      };
      looks.add(check);
      check();
      void exit.then(({ code, stderr }) => reject(new Error(`The child ended with ${String(code)}: ${stderr}`)));
    });
  return {
    pid: child.pid,
    lines,
    stderrText: () => output.stderr,
    waitFor: (condition) => until(() => condition(lines)),
    waitForStderr: async (fits) => {
      await until(() => fits.test(output.stderr));
      return output.stderr;
    },
    writeInput: (text) => void child.stdin.write(text),
    signal: (name) => void child.kill(name),
    kill: async () => {
      child.kill('SIGKILL');
      await exit;
    },
    ended: exit.then(({ code }) => code),
    exit,
  };
}

/** Waits for `close`, which comes when the pipes are read to their end. */
function exitOf(
  child: ChildProcessWithoutNullStreams,
  output: { readonly stdout: string; readonly stderr: string },
): Promise<ChildExit> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...output }));
  });
}
