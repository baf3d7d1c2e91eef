/** A command as a process of its own: its streams, its signals, its exit code. */
import { onSignals } from '../../system/signals.js';
import { nodeSystem } from '../../system/system.js';
import type { PrintedStream } from '../terminal/printer.js';
import { printable } from '../terminal/printer.js';
import { EXIT, messageOf } from './exit-codes.js';

/** The parts of the process that commands use. */
export interface CommandProcess {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: PrintedStream & { readonly isTTY?: boolean; readonly columns?: number };
  /** Writes to standard error. */
  readonly complain: (text: string) => void;
  /** Aborts the command. */
  readonly signal: AbortSignal;
}

/**
 * Runs a command in this process; an unexpected error ends the process with the exit code of the command's own errors.
 */
export async function runAsProcess(
  command: (process: CommandProcess) => Promise<number>,
  exitOf: (error: unknown) => number,
): Promise<void> {
  const stopping = new AbortController();
  const complain = (text: string): void => void process.stderr.write(text);
  onSignals(
    nodeSystem(),
    () => stopping.abort(),
    () => process.exit(EXIT.interrupted),
  );
  process.on('uncaughtException', (error) => {
    complain(`${printable(messageOf(error, ''))}\n`);
    process.exit(exitOf(error));
  });
  // A failed write is reported where it happens.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

  const { env, stdin, stdout } = process;
  process.exitCode = await command({ env, stdin, stdout, complain, signal: stopping.signal });
}
