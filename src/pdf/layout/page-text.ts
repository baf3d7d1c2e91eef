/**
 * Converts the positioned runs of pages to text, for both parsers: runs → segments (segments.ts) → blocks in reading order
 * (columns.ts) → lines → text. A line ends with a line feed, a paragraph with two; a tab separates cells of a row. The
 * second half of a word that is divided at the end of a line moves up. Pure.
 */
import { elementAt } from '../../system/element.js';
import type { Block } from './columns.js';
import { blocksOf } from './columns.js';
import { inReadingOrder, isLineRightToLeft, isMostlyRightToLeft, withMirroredBrackets } from './direction.js';
import { isUnspaced, readable } from './glyph-text.js';
import type { Row } from './rows.js';
import { baselineOf, largest, leftOf, median } from './rows.js';
import type { Segment } from './segments.js';
import { segmentsOf } from './segments.js';
import type { PagesOfRuns, TextRun } from './text-run.js';

/** A paragraph begins where the distance to the next line exceeds the usual one by this factor, */
const PARAGRAPH_STEP = 1.4;
/** or the sizes of the letters differ by this factor (headings). */
const HEADING_SIZE = 1.15;
/** Largest distance between two lines of the same text, in ems. */
const WIDEST_STEP = 2.5;
/** In ems: largest indent that counts as none, and the range of the indent of a first line. */
const INDENT = { none: 0.3, least: 0.7, most: 4 };
/** Segments of a row that are further apart than this, in ems, are cells. */
const CELL_GAP = 2;

/** The text of each page; '' for a page without text. */
export function textOfPages(pages: PagesOfRuns): readonly string[] {
  return joinedLines(pages.map(linesOf));
}

function linesOf(runs: readonly TextRun[]): readonly Line[] {
  return byDirection(runs).flatMap((group) => {
    const isRightToLeft = isMostlyRightToLeft(group.map(({ text }) => text).join(''));
    return blocksOf(segmentsOf(group, isRightToLeft)).flatMap((block) => linesOfBlock(block, isRightToLeft));
  });
}

/** The runs, grouped by the angle of their baselines and rotated upright. The angle of most letters comes first. */
function byDirection(runs: readonly TextRun[]): readonly (readonly TextRun[])[] {
  const groups = new Map<number, { letters: number; readonly runs: TextRun[] }>();
  for (const run of runs) {
    const group = groups.get(run.angle) ?? { letters: 0, runs: [] };
    group.letters += run.text.length;
    group.runs.push(rotatedUpright(run));
    groups.set(run.angle, group);
  }
  return [...groups.values()].sort((one, other) => other.letters - one.letters).map((group) => group.runs);
}

function rotatedUpright(run: TextRun): TextRun {
  if (run.angle === 0) return run;
  const [sin, cos] = [Math.sin((run.angle * Math.PI) / 180), Math.cos((run.angle * Math.PI) / 180)];
  return { ...run, x: run.x * cos - run.baseline * sin, baseline: run.x * sin + run.baseline * cos };
}

function linesOfBlock(block: Block, isRightToLeft: boolean): readonly Line[] {
  const steps = block.slice(1).map((row, index) => stepBetween(elementAt(block, index), row));
  const usual = median(steps.filter((step) => step > 0));
  const left = median(block.map(leftOf));
  const right = largest(block.flat().map((segment) => segment.right));
  return block.map((row, index) => {
    const next = block[index + 1];
    const text = withMirroredBrackets(readable(rowText(row, isRightToLeft)));
    if (next === undefined) return { text, after: 'block' };
    const isFurther = elementAt(steps, index) > usual * PARAGRAPH_STEP;
    if (isFurther || isOtherSize(row, next) || isIndented(row, next, left)) return { text, after: 'paragraph' };
    return { text, after: isWrapped(row, next, right) ? 'nothing' : 'line' };
  });
}

function stepBetween(upper: Row, lower: Row): number {
  return baselineOf(lower) - baselineOf(upper);
}

function isOtherSize(upper: Row, lower: Row): boolean {
  const [one, other] = [sizeOf(upper), sizeOf(lower)];
  return Math.max(one, other) > Math.min(one, other) * HEADING_SIZE;
}

/** Whether the next line is the indented first line of a paragraph. */
function isIndented(row: Row, next: Row, usual: number): boolean {
  const [before, indent] = [Math.abs(leftOf(row) - usual), leftOf(next) - usual];
  const em = sizeOf(next);
  return before < em * INDENT.none && indent > em * INDENT.least && indent < em * INDENT.most;
}

function sizeOf(row: Row): number {
  return largest(row.map(({ size }) => size));
}

/** Whether a line of a script without spaces continues in the next line without a space. */
function isWrapped(row: Row, next: Row, right: number): boolean {
  const last = row.at(-1);
  if (last === undefined || last.right < right - last.size * 1.5) return false;
  if (stepBetween(row, next) > last.size * WIDEST_STEP) return false;
  return (
    isUnspaced([...last.text.trimEnd()].at(-1) ?? '') && isUnspaced([...(next[0]?.text.trimStart() ?? '')][0] ?? '')
  );
}

function rowText(row: Row, isPageRightToLeft: boolean): string {
  const isRightToLeft = isLineRightToLeft(row, isPageRightToLeft);
  let text = '';
  let before: Segment | null = null;
  for (const segment of inReadingOrder(row, isRightToLeft).flat()) {
    if (before !== null) text += isFarApart(before, segment) ? '\t' : ' ';
    text += segment.text;
    before = segment;
  }
  return text;
}

function isFarApart(one: Segment, other: Segment): boolean {
  const gap = Math.max(one.left, other.left) - Math.min(one.right, other.right);
  return gap > CELL_GAP * Math.max(one.size, other.size);
}

interface Line {
  readonly text: string;
  /** What follows the line: nothing (the next line continues it), a line, a paragraph, or the next column or block. */
  readonly after: 'nothing' | 'line' | 'paragraph' | 'block';
}

/** The first half of a word that is divided at the end of a line: two or more letters, then any hyphen. */
const DIVIDED = /(\p{L}{2,})[-\u00AD\u2010]$/u;
/** The second half. If it begins with a capital or a digit, the word is a compound and keeps its hyphen. */
const REST = /^\p{Ll}+/u;
const REST_OF_COMPOUND = /^[\p{L}\p{N}]/u;
const COMPOUND = /\p{L}+(?:[-\u2010]\p{L}+)+/gu;
const WORD = /\p{L}{2,}/gu;
/** Largest number of words collected from a document. */
const MOST_WORDS = 200_000;

/**
 * The text of each page. A divided word keeps its hyphen if the document has the word with a hyphen elsewhere
 * ("well-known"), or has both halves but not the joined word, or if the second half begins with a capital or a digit.
 * Words are not joined across pages, because offsets belong to pages.
 */
function joinedLines(pages: readonly (readonly Line[])[]): readonly string[] {
  const words = wordsOf(pages);
  return pages.map((lines) => {
    let text = '';
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

/** The line after a divided word: the second half moves up, and a line break follows it. */
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
      // A sentence that continues in the next column is one paragraph.
      return /^\p{Ll}/u.test(next.text) && !/[.!?:]$/u.test(line.text) ? '\n' : '\n\n';
    default:
      return line.after satisfies never;
  }
}

function keepsHyphen(half: string, rest: string, words: ReadonlySet<string>): boolean {
  if (words.has(`${half}-${rest}`)) return true;
  return !words.has(half + rest) && words.has(half) && words.has(rest);
}

/** The words and compounds of the document in lower case, without divided words. */
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
