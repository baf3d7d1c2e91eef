/** What a command of the terminal is, the parts of its process that it works with, and what all arguments share. */
import type { Readable } from 'node:stream';
import type { PrintedStream } from '../terminal/printer.js';
import type { ProgressStream } from '../terminal/progress.js';
import { CouncilError } from '../../errors.js';
import { plainUrl } from '../../config-values.js';

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

/** An argument that is not accepted: one too many, one missing, or malformed. */
export class UsageFault extends CouncilError {
  readonly code = 'cli.usage';
  constructor(message: string) {
    super(message, {});
  }
}

/** Parses the words after a command. @throws {UsageFault} for whatever `parse` throws */
export function orUsageFault<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageFault(error instanceof Error ? error.message : String(error));
  }
}

/** The address given as `--url`, without trailing slash. @throws {UsageFault} */
export function serviceUrl(text: string): string {
  const url = plainUrl(text);
  if (url === null)
    throw new UsageFault('--url takes an http or https address without credentials, query and fragment');
  return url;
}
