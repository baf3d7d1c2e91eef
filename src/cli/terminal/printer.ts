/** Styles text for a terminal; plain text elsewhere. */
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
/** The text in a style, where there are styles. */
export type Styler = (style: Style, text: string) => string;

export interface TerminalTraits {
  readonly isTerminal: boolean;
  /** `NO_COLOR` (no-color.org): any text but the empty one turns colours off. */
  readonly noColor: string | undefined;
  /** `TERM`. */
  readonly term: string | undefined;
}

export function stylerFor({ isTerminal, noColor = '', term }: TerminalTraits): Styler {
  if (!isTerminal || noColor !== '' || term === 'dumb') return (_, text) => text;
  return (style, text) => `\x1b[${STYLES[style][0]}m${text}\x1b[${STYLES[style][1]}m`;
}

// Standard output.

/** The reader of the pipe has gone away, as `head` does. */
export class ReaderGone extends CouncilError {
  readonly code = 'cli.reader-gone';
  constructor() {
    super('Nobody reads the output any more', {});
  }
}

/** It cannot be written, as on a full disk. */
export class OutputFailed extends CouncilError {
  readonly code = 'cli.output-failed';
  constructor(cause: Error) {
    super(`Cannot write the output: ${cause.message}`, {}, { cause });
  }
}

export interface PrintedStream {
  write(text: string | Uint8Array, done: (fault?: Error | null) => void): unknown;
}

/** Writes, one piece after the other. @throws {ReaderGone | OutputFailed} */
export type Print = (text: string | Uint8Array) => Promise<void>;

export function printerOn(stream: PrintedStream): Print {
  return async (text) => {
    const fault = await new Promise<Error | null | undefined>((resolve) => stream.write(text, resolve));
    if (!fault) return;
    throw 'code' in fault && fault.code === 'EPIPE' ? new ReaderGone() : new OutputFailed(fault);
  };
}

// Makes text of models and users safe for a terminal: without characters that control it, or reverse the reading
// direction.

/** Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX #9, section 2), and line separators. */
const TURNING = '\\u061C\\u200E\\u200F\\u2028-\\u202E\\u2066-\\u2069';
/** Control characters but line feed and tab, direction controls, and unpaired surrogates. */
const COMMANDING = new RegExp(`(?![\\n\\t])[\\p{Cc}\\p{Cs}${TURNING}]`, 'gu');

/** The text with each such character replaced by U+FFFD; line feed and tab stay. */
export function printable(text: string): string {
  return text.replaceAll(COMMANDING, '\uFFFD');
}

/** The same in one line: white space of any kind and length becomes a space. */
export function inOneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' ')).trim();
}

/** A JSON text with each such character, which only a string in it can hold, escaped: the same value. */
export function printableJson(json: string): string {
  return json.replaceAll(COMMANDING, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
