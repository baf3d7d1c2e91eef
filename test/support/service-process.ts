/** The service as `npm start` runs it: dist/src/main.js in a process of its own, on a free port. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** The flags of `npm start`. */
const FLAGS = ['--max-semi-space-size=16'];

/** Time for a stop, after which the test sends SIGKILL. */
const DEADLINE_MS = 30_000;

export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly url: string;
  /** From the start of the process to its ready line. */
  readonly startUpMs: number;
  /** Sends SIGTERM and waits for the end. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts the service; resolves at its ready line, rejects if the process ends before.
 *
 * @param flags of Node, beside those of `npm start`
 * @param environment beside DATA_DIR and PORT; otherwise default settings
 */
export async function startServiceProcess(
  dataDir: string,
  {
    flags = [],
    environment = {},
  }: { readonly flags?: readonly string[]; readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<ServiceProcess> {
  const from = performance.now();
  const child = spawn(process.execPath, [...FLAGS, ...flags, MAIN], {
    env: { DATA_DIR: dataDir, PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const stop = async (): Promise<void> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
    child.kill('SIGTERM');
    await closed;
    clearTimeout(timer);
  };
  try {
    const url = await readyUrl(child);
    return { child, pid: child.pid ?? 0, url, startUpMs: performance.now() - from, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The address on the ready line. Later output is dropped. */
function readyUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.on('error', reject);
    child.on('close', (code) => reject(new Error(`The service ended with code ${String(code)} before it was ready`)));
    const onText = (text: string): void => {
      output += text;
      const url = READY.exec(output)?.[1];
      if (url === undefined) return;
      child.stdout?.off('data', onText).resume();
      resolve(url);
    };
    child.stdout?.setEncoding('utf8').on('data', onText);
  });
}

const READY = /listening on (http:\/\/[^\s"]+)/;
