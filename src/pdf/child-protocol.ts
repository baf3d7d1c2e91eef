/** The options and messages of the extraction child: one JSON object per line on its descriptor 3. */

import { isKeyOf } from '../system/element.js';
import { fieldOf } from '../system/untrusted.js';

export type Parser = 'pdfjs' | 'pdf2json';

/** The only argument of the child, as JSON. The child reads the PDF from its standard input. */
export interface ChildOptions {
  readonly parser: Parser;
  /** Process id of the parent. The child ends when the parent ends. */
  readonly parentPid: number;
  /** Resident memory at which the child ends itself, in bytes. */
  readonly maxMemoryBytes: number;
  /** Megabytes of the parser's JavaScript heap. */
  readonly maxHeapMb: number;
  /** Processor time of all its threads after which the child ends itself, in milliseconds. */
  readonly maxProcessorMs: number;
  readonly maxPages: number;
  /** UTF-16 code units of all pages. */
  readonly maxTextUnits: number;
}

/** The child sends the pages in order and then `done`, or one of the other kinds. */
export type ChildMessage =
  | { readonly kind: 'page'; readonly text: string }
  | { readonly kind: 'done' }
  /** The file needs a password. */
  | { readonly kind: 'encrypted' }
  | { readonly kind: 'xfa-form' }
  | { readonly kind: 'portfolio' }
  | { readonly kind: 'too-many-pages'; readonly found: number }
  | { readonly kind: 'too-much-text' }
  | { readonly kind: 'out-of-memory' }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'failed'; readonly reason: string };

/** The descriptor of the messages. It is not standard output, because pdf2json prints there. */
export const MESSAGE_FD = 3;

/** The result of a child. */
export type ChildEnd =
  | { readonly kind: 'text'; readonly texts: readonly string[] }
  | Exclude<ChildMessage, { kind: 'page' | 'done' }>
  | { readonly kind: 'stopped' };

/** Reads the lines of a child and validates each, because the child has parsed an untrusted file. */
export function messageReader(
  onInvalid: () => void,
  { maxPages, maxTextUnits }: ChildOptions,
): { read(part: string): void; end(): ChildEnd | null } {
  const texts: string[] = [];
  let rest = '';
  let last: ChildEnd | null = null;
  /** JSON takes at most six characters per code unit. */
  const longest = maxTextUnits * 6 + 1_000;

  const take = (line: string): void => {
    if (line === '' || last !== null) return;
    const message = messageOf(line);
    if (message === null || texts.length > maxPages) return onInvalid();
    if (message.kind === 'page') texts.push(message.text);
    else last = message.kind === 'done' ? { kind: 'text', texts } : message;
  };
  return {
    read(part) {
      const text = rest + part;
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      if (rest.length > longest) return onInvalid();
      text.slice(0, end).split('\n').forEach(take);
    },
    end: () => last,
  };
}

function messageOf(line: string): ChildMessage | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  return isMessage(value) ? value : null;
}

function isMessage(value: unknown): value is ChildMessage {
  const kind = fieldOf(value, 'kind');
  if (typeof kind !== 'string' || !isKeyOf(FIELD_OF_KIND, kind)) return false;
  const field = FIELD_OF_KIND[kind];
  return field === null || typeof fieldOf(value, field.name) === field.type;
}

/** The field of each kind of message, or null if it has none. */
const FIELD_OF_KIND: Readonly<Record<ChildMessage['kind'], Field | null>> = {
  page: { name: 'text', type: 'string' },
  done: null,
  encrypted: null,
  'xfa-form': null,
  portfolio: null,
  'too-many-pages': { name: 'found', type: 'number' },
  'too-much-text': null,
  'out-of-memory': null,
  'timed-out': null,
  failed: { name: 'reason', type: 'string' },
};

interface Field {
  readonly name: string;
  readonly type: 'string' | 'number';
}
