/** Writes to standard output and makes text safe for a terminal: styles, and no characters that control it. */
import { CouncilError } from '../../errors.js';

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof STYLES;
/** Returns the text in a style, or unchanged if the output has no styles. */
export type Styler = (style: Style, text: string) => string;

export interface TerminalTraits {
  readonly isTerminal: boolean;
  /** `NO_COLOR` (no-color.org): any value but '' turns colours off. */
  readonly noColor: string | undefined;
  /** `TERM`. */
  readonly term: string | undefined;
}

export function stylerFor({ isTerminal, noColor = '', term }: TerminalTraits): Styler {
  if (!isTerminal || noColor !== '' || term === 'dumb') return (_, text) => text;
  return (style, text) => `\x1b[${STYLES[style][0]}m${text}\x1b[${STYLES[style][1]}m`;
}

/** The reader has closed the pipe, for example `head`. */
export class ReaderGone extends CouncilError {
  readonly code = 'cli.reader-gone';
  constructor() {
    super('The reader has closed the output', {});
  }
}

/** The output cannot be written, for example on a full disk. */
export class OutputFailed extends CouncilError {
  readonly code = 'cli.output-failed';
  constructor(cause: Error) {
    super(`Cannot write the output: ${cause.message}`, {}, { cause });
  }
}

export interface PrintedStream {
  write(text: string | Uint8Array, done: (fault?: Error | null) => void): unknown;
}

/** Writes a chunk. @throws {ReaderGone | OutputFailed} */
export type Print = (text: string | Uint8Array) => Promise<void>;

export function printerOn(stream: PrintedStream): Print {
  return async (text) => {
    const fault = await new Promise<Error | null | undefined>((resolve) => stream.write(text, resolve));
    if (!fault) return;
    throw 'code' in fault && fault.code === 'EPIPE' ? new ReaderGone() : new OutputFailed(fault);
  };
}

/** Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX #9, section 2), and line separators. */
const DIRECTION = '\\u061C\\u200E\\u200F\\u2028-\\u202E\\u2066-\\u2069';
/** Control characters but line feed and tab, direction controls, and unpaired surrogates. */
const CONTROLS = new RegExp(`(?![\\n\\t])[\\p{Cc}\\p{Cs}${DIRECTION}]`, 'gu');

/** Text of models and users, safe for a terminal: replaces each character that controls it by U+FFFD. */
export function printable(text: string): string {
  return text.replaceAll(CONTROLS, '\uFFFD');
}

/** The same in one line: replaces each run of white space by a space. */
export function inOneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' ')).trim();
}

/** A JSON text with those characters escaped, which only its strings can contain. Its value stays the same. */
export function printableJson(json: string): string {
  return json.replaceAll(CONTROLS, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
