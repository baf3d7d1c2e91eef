/** What the extraction child is started with and what it says: one JSON object a line on its descriptor 3. */

export type Parser = 'pdfjs' | 'pdf2json';

/** Its only command line argument, as JSON. The bytes of the PDF come on its standard input, to their end. */
export interface ChildOrder {
  readonly parser: Parser;
  /** Process id of who started it; the child ends when that process is no longer its parent. */
  readonly parentPid: number;
  /** Bytes of resident memory at which it ends itself. */
  readonly maxMemoryBytes: number;
  /** Megabytes of the parser's JavaScript heap. */
  readonly maxHeapMb: number;
  /** Milliseconds after which it ends itself, should its parent not do it. */
  readonly maxMs: number;
  readonly maxPages: number;
  /** UTF-16 code units of all pages. */
  readonly maxTextUnits: number;
}

/** Pages come from the first on, then `done`; everything else is a last word, too. */
export type ChildMessage =
  | { readonly kind: 'page'; readonly text: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'encrypted' }
  | { readonly kind: 'too-many-pages'; readonly found: number }
  | { readonly kind: 'too-much-text' }
  | { readonly kind: 'out-of-memory' }
  | { readonly kind: 'failed'; readonly reason: string };

/** The descriptor its messages go to. Standard output is no place for them: pdf2json prints there. */
export const MESSAGE_FD = 3;
