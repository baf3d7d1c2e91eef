/** What a command is, the parts of the process that it uses, and what all commands do with words, output and errors. */
import type { Readable } from 'node:stream';
import type { ParseArgsConfig } from 'node:util';
import { parseArgs } from 'node:util';
import { plainUrl } from '../../config-values.js';
import { fieldOf } from '../../system/untrusted.js';
import type { Print, PrintedStream } from '../terminal/printer.js';
import { ReaderGone, printable, printerOn } from '../terminal/printer.js';
import type { ProgressStream } from '../terminal/progress.js';
import { EXIT, OutcomeUnknown, UsageFault, exitOfError, messageOf } from './exit-codes.js';

/** Runs a command and reports its errors. @param words what follows `council`, the name first @returns exit code */
export type Command = (words: readonly string[], here: CommandProcess) => Promise<number>;

export interface CommandProcess {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: PrintedStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: ProgressStream;
  /** Aborts the command. */
  readonly signal: AbortSignal;
  /** Ends the process at once, for a command that cannot continue. */
  readonly exit: (code: number) => void;
}

export type Options = NonNullable<ParseArgsConfig['options']>;

/** The option that every command takes. */
export const HELP = { help: { type: 'boolean', short: 'h' } } as const;

/** Splits the words after a command into options and positionals. @throws {UsageFault} an option is unknown or malformed */
export function parseWords<const O extends Options>(words: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...words], allowPositionals: true, options });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // Node adds advice about words that begin with a dash.
    throw new UsageFault(text.replace(/\. To specify .*$/s, ''));
  }
}

export type Words<O extends Options> = ReturnType<typeof parseWords<O>>;

export interface CommandSpec<O extends Options> {
  readonly usage: string;
  /** With HELP. An error about DATA_DIR suggests `--url` to a command that takes it. */
  readonly options: O;
  /** Exit code of every error. Default: by the kind of the error. */
  readonly exitOnError?: number;
}

export interface Output {
  /** Writes to standard output. */
  readonly print: Print;
  /** Writes a line to standard error. */
  readonly notify: (text: string) => void;
}

/** Parses the words, shows the usage for `--help`, runs a command and reports its error. */
export async function execute<const O extends Options>(
  [, ...words]: readonly string[],
  { stdout, stderr, signal }: Pick<CommandProcess, 'stdout' | 'stderr' | 'signal'>,
  { usage, options, exitOnError }: CommandSpec<O>,
  act: (given: Words<O>, output: Output) => Promise<number>,
): Promise<number> {
  const print = printerOn(stdout);
  const notify = (text: string): void => void stderr.write(`${printable(text)}\n`);
  try {
    const given = parseWords(words, options);
    if (fieldOf(given.values, 'help') === true) {
      await print(`${usage}\n`);
      return EXIT.done;
    }
    const code = await act(given, { print, notify });
    return signal.aborted ? EXIT.interrupted : code;
  } catch (error) {
    if (error instanceof ReaderGone) return EXIT.done;
    // After Ctrl-C an error is expected and not shown, unless the command may have changed something.
    if (!signal.aborted || error instanceof OutcomeUnknown) {
      notify(messageOf(error, { usage, takesUrl: 'url' in options }));
    }
    return signal.aborted ? EXIT.interrupted : (exitOnError ?? exitOfError(error));
  }
}

/** Prints each line as long as there is a reader: without one the exit code still gives the result. */
export function printLines(print: Print): (line: string) => Promise<void> {
  return (line) =>
    print(`${printable(line)}\n`).catch((error: unknown) => {
      if (!(error instanceof ReaderGone)) throw error;
    });
}

/** The value of `--url` without trailing slash. @throws {UsageFault} */
export function serviceUrl(text: string): string {
  const url = plainUrl(text);
  if (url === null)
    throw new UsageFault('--url takes an http or https address without credentials, query and fragment');
  return url;
}
