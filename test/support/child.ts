/** A child process that tells its story in lines, for tests that need a real one: to kill it, to be in its way. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface Child {
  readonly pid: number | undefined;
  /** Lines it has printed so far. */
  readonly lines: readonly string[];
  /** What it has written to standard error so far. */
  complaint(): string;
  /** Resolves once a condition on the lines holds; rejects with what it wrote to standard error when it ends before. */
  waitFor(condition: (lines: readonly string[]) => boolean): Promise<void>;
  /** Sends a signal. */
  signal(name: NodeJS.Signals): void;
  /** SIGKILL; resolves once it is gone and its last line is read. */
  kill(): Promise<void>;
  /** Resolves once it has ended by itself, with its exit code. */
  readonly ended: Promise<number | null>;
}

/** Starts a program with arguments, in this process's environment or in another. */
export function startChild(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Child {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const lines: string[] = [];
  const complaints: string[] = [];
  const checks = new Set<() => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    for (const check of checks) check();
  });
  child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk.toString()));
  const ended = endOf(child);
  return {
    pid: child.pid,
    lines,
    complaint: () => complaints.join(''),
    ended,
    waitFor: (condition) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (!condition(lines)) return;
          checks.delete(check);
          resolve();
        };
        checks.add(check);
        check();
        void ended.then((code) => reject(new Error(`The child ended with ${String(code)}: ${complaints.join('')}`)));
      }),
    signal: (name) => void child.kill(name),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** `close` comes after `exit`, when the pipes are read to their end. */
async function endOf(child: ChildProcess): Promise<number | null> {
  await once(child, 'close');
  return child.exitCode;
}
