/** What a command of the terminal is, and the parts of its process that it works with. */
import type { Readable } from 'node:stream';
import type { PrintedStream } from '../terminal/printer.js';
import type { ProgressStream } from '../terminal/progress.js';

/** Runs a command; it tells its own errors. @param words what follows `council`, its name first @returns exit code */
export type Command = (words: readonly string[], here: CommandProcess) => Promise<number>;

export interface CommandProcess {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: PrintedStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: ProgressStream;
  /** Aborts the command. */
  readonly signal: AbortSignal;
  /** Ends the process at once, where the command cannot. */
  readonly exit: (code: number) => void;
}
