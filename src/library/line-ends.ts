/** What stands between two lines: a break, or nothing where a word was divided. */

export interface Line {
  readonly text: string;
  /** What follows: the line goes on without a space, the next line, a new paragraph, or the next column or block. */
  readonly after: 'nothing' | 'line' | 'paragraph' | 'block';
}

/** A word cut at a line's end: two letters and more, then a hyphen, a soft or a hard one. */
const DIVIDED = /(\p{L}{2,})[-\u00AD\u2010]$/u;
/** How the rest of a divided word begins. A capital or a digit is a compound's: its hyphen stays. */
const REST = /^\p{Ll}+/u;
const REST_OF_COMPOUND = /^[\p{L}\p{N}]/u;
const COMPOUND = /\p{L}+(?:[-\u2010]\p{L}+)+/gu;
const WORD = /\p{L}{2,}/gu;
/** Words remembered of a document; of what comes later, none. */
const MOST_WORDS = 200_000;

/**
 * The text of each page. Whether a divided word keeps its hyphen, the document itself tells: by having it in one piece
 * somewhere within a line, with one ("well-known") or without; failing that, it keeps it when both halves are words of
 * the document. Before a capital or a digit it keeps it always. Words are not joined over a page's end: offsets belong
 * to pages.
 */
export function joinedLines(pages: readonly (readonly Line[])[]): readonly string[] {
  const words = wordsOf(pages);
  return pages.map((lines) => {
    let text = '';
    // The rest of a word moves up to its first half: what is left of its line follows after the break.
    let hyphen: { readonly half: string } | null = null;
    for (const [index, line] of lines.entries()) {
      const next = lines[index + 1];
      text += hyphen === null ? line.text : restOf(hyphen.half, line.text, words);
      hyphen = next === undefined ? null : dividedBefore(line, next);
      if (hyphen !== null) text = text.slice(0, -1);
      else if (next !== undefined) text += breakAfter(line, next);
    }
    return text.replaceAll('\u00AD', '').trim();
  });
}

function dividedBefore(line: Line, next: Line): { readonly half: string } | null {
  if (line.after === 'paragraph') return null;
  const half = DIVIDED.exec(line.text)?.[1];
  return half !== undefined && REST_OF_COMPOUND.test(next.text) ? { half } : null;
}

/** The line after a divided word: its first word ends the divided one, the others stand in their own line. */
function restOf(half: string, line: string, words: ReadonlySet<string>): string {
  const rest = REST.exec(line)?.[0];
  const isCompound = rest === undefined || keepsHyphen(half.toLowerCase(), rest, words);
  const end = line.search(/[\s]/u);
  const moved = end < 0 ? line : `${line.slice(0, end)}\n${line.slice(end + 1)}`;
  return isCompound ? `-${moved}` : moved;
}

function breakAfter(line: Line, next: Line): string {
  switch (line.after) {
    case 'nothing':
      return '';
    case 'line':
      return '\n';
    case 'paragraph':
      return '\n\n';
    case 'block':
      // A sentence that goes on in the next column is one paragraph.
      return /^\p{Ll}/u.test(next.text) && !/[.!?:]$/u.test(line.text) ? '\n' : '\n\n';
    default:
      return line.after satisfies never;
  }
}

function keepsHyphen(half: string, rest: string, words: ReadonlySet<string>): boolean {
  if (words.has(`${half}-${rest}`)) return true;
  return !words.has(half + rest) && words.has(half) && words.has(rest);
}

/** Words and compounds within lines, in lower case. A word at a line's end that a hyphen divides is none. */
function wordsOf(pages: readonly (readonly Line[])[]): ReadonlySet<string> {
  const words = new Set<string>();
  for (const { text } of pages.flat()) {
    const whole = text.replace(DIVIDED, '');
    for (const [word] of [...whole.matchAll(COMPOUND), ...whole.matchAll(WORD)]) {
      if (words.size < MOST_WORDS) words.add(word.toLowerCase().replaceAll('\u2010', '-'));
    }
  }
  return words;
}
