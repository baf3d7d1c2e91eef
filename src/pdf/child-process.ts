/** One extraction child from its start to its end. */
import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { System } from '../system/system.js';
import { messageReader, type ChildEnd } from './child-protocol.js';
import type { ChildOptions } from './child-protocol.js';

export interface ChildTask extends ChildOptions {
  readonly bytes: Uint8Array;
  /** Kills the child when it aborts. */
  readonly signal: AbortSignal;
}

/** Milliseconds the child's own deadline comes later: normally the parent's timer ends it. */
const CHILD_GRACE_MS = 1_000;

const PROGRAM = fileURLToPath(new URL('./extract-child.js', import.meta.url));

/** Runs a child with an empty environment; resolves once it has ended, however it did. */
export function runChild(
  { bytes, signal, ...options }: ChildTask,
  { after }: Pick<System, 'after'>,
): Promise<ChildEnd> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: 'stopped' });
    const childOptions: ChildOptions = { ...options, maxMs: options.maxMs + CHILD_GRACE_MS };
    const child = spawn(
      process.execPath,
      [`--max-old-space-size=${options.maxHeapMb}`, PROGRAM, JSON.stringify(childOptions)],
      {
        env: {},
        stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
        windowsHide: true,
      },
    );
    let cut: ChildEnd | null = null;
    const kill = (why: ChildEnd): void => {
      cut ??= why;
      child.kill('SIGKILL');
    };
    const cancel = after(options.maxMs, () => kill({ kind: 'timed-out' }));
    const stop = (): void => kill({ kind: 'stopped' });
    signal.addEventListener('abort', stop);

    const messages = messageReader(
      () => kill({ kind: 'failed', reason: 'The parser said something else than text' }),
      options,
    );
    const results = child.stdio[3];
    if (!(results instanceof Readable)) throw new TypeError('A child process has no pipe of results');
    results.setEncoding('utf8');
    results.on('data', (part: string) => messages.read(part));
    results.on('error', () => undefined);
    // A child that exits early leaves the rest of its input unread, which makes the pipe fail.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(bytes);

    const settle = (end: ChildEnd): void => {
      cancel();
      signal.removeEventListener('abort', stop);
      resolve(end);
    };
    child.on('error', (error) => settle({ kind: 'failed', reason: error.message }));
    child.on('close', (code, killedBy) => {
      // A complete result counts, even if the child was killed right after it.
      settle(messages.end() ?? cut ?? { kind: 'failed', reason: `The parser ended with ${killedBy ?? code}` });
    });
  });
}
