/**
 * The text of pages out of positioned runs, the same for both parsers: runs → segments (segments.ts) → blocks in
 * reading order (reading-order.ts) → lines → text. Lines end in a line feed, paragraphs in two, cells of a row that
 * stand apart are parted by a tab. A word divided at a line's end is joined, the rest of it moves up. Pure.
 */
import { elementAt } from '../../system/element.js';
import { inReadingOrder, isLineBackwards, isRightToLeft, withBrackets } from './direction.js';
import { isUnspaced, readable } from './glyph-text.js';
import type { Block } from './reading-order.js';
import { blocksOf } from './reading-order.js';
import type { Row } from './rows.js';
import { baselineOf, largest, leftOf, median } from './rows.js';
import type { Segment } from './segments.js';
import { segmentsOf } from './segments.js';
import type { PagesOfRuns, TextRun } from './text-run.js';

/** A step down of more than this times the usual one begins a paragraph. */
const PARAGRAPH_STEP = 1.4;
/** So does another size of letters: headings. */
const HEADING_SIZE = 1.15;
/** Ems from a line to the next one of the same text, at the most. */
const WIDEST_STEP = 2.5;
/** In ems: what counts as none, and between which lengths a first line's indent is. */
const INDENT = { none: 0.3, least: 0.7, most: 4 };
/** Segments of a row that are further apart, in ems, are cells. */
const CELL_GAP = 2;

/** The text of each page; a page without text is an empty one. */
export function textOfPages(pages: PagesOfRuns): readonly string[] {
  return joinedLines(pages.map(linesOf));
}

function linesOf(runs: readonly TextRun[]): readonly Line[] {
  return upright(runs).flatMap((group) => {
    const isBackwards = isRightToLeft(group.map(({ text }) => text).join(''));
    return blocksOf(segmentsOf(group, isBackwards)).flatMap((block) => linesOfBlock(block, isBackwards));
  });
}

/** Runs by the direction of their baselines, each turned upright; the direction most letters have comes first. */
function upright(runs: readonly TextRun[]): readonly (readonly TextRun[])[] {
  const groups = new Map<number, { letters: number; readonly runs: TextRun[] }>();
  for (const run of runs) {
    const group = groups.get(run.angle) ?? { letters: 0, runs: [] };
    group.letters += run.text.length;
    group.runs.push(turned(run));
    groups.set(run.angle, group);
  }
  return [...groups.values()].sort((one, other) => other.letters - one.letters).map((group) => group.runs);
}

function turned(run: TextRun): TextRun {
  if (run.angle === 0) return run;
  const [sin, cos] = [Math.sin((run.angle * Math.PI) / 180), Math.cos((run.angle * Math.PI) / 180)];
  return { ...run, x: run.x * cos - run.baseline * sin, baseline: run.x * sin + run.baseline * cos };
}

function linesOfBlock(block: Block, isBackwards: boolean): readonly Line[] {
  const steps = block.slice(1).map((row, index) => stepBetween(elementAt(block, index), row));
  const usual = median(steps.filter((step) => step > 0));
  const left = median(block.map(leftOf));
  const right = largest(block.flat().map((segment) => segment.right));
  return block.map((row, index) => {
    const next = block[index + 1];
    const text = withBrackets(readable(rowText(row, isBackwards)));
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

/** The first line of a paragraph, after one that begins where most do. */
function isIndented(row: Row, next: Row, usual: number): boolean {
  const [before, indent] = [Math.abs(leftOf(row) - usual), leftOf(next) - usual];
  const em = sizeOf(next);
  return before < em * INDENT.none && indent > em * INDENT.least && indent < em * INDENT.most;
}

function sizeOf(row: Row): number {
  return largest(row.map(({ size }) => size));
}

/** A full line of a script without spaces goes on in the next one without any, unless that is far below. */
function isWrapped(row: Row, next: Row, right: number): boolean {
  const last = row.at(-1);
  if (last === undefined || last.right < right - last.size * 1.5) return false;
  if (stepBetween(row, next) > last.size * WIDEST_STEP) return false;
  return (
    isUnspaced([...last.text.trimEnd()].at(-1) ?? '') && isUnspaced([...(next[0]?.text.trimStart() ?? '')][0] ?? '')
  );
}

function rowText(row: Row, isPageBackwards: boolean): string {
  const isBackwards = isLineBackwards(row, isPageBackwards);
  let text = '';
  let before: Segment | null = null;
  for (const segment of inReadingOrder(row, isBackwards).flat()) {
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
 * The text of each page. Whether a divided word keeps its hyphen depends on how the document spells it elsewhere
 * within a line, with one ("well-known") or without; failing that, it keeps it when both halves are words of
 * the document. Before a capital or a digit it keeps it always. Words are not joined over a page's end: offsets belong
 * to pages.
 */
function joinedLines(pages: readonly (readonly Line[])[]): readonly string[] {
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
