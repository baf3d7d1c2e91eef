/**
 * The text of pages out of positioned runs, the same for both parsers: runs → segments (segments.ts) → blocks in
 * reading order (reading-order.ts) → lines → text. Lines end in a line feed, paragraphs in two, cells of a row that
 * stand apart are parted by a tab. A word divided at a line's end is joined, the rest of it moves up. Pure.
 */
import { isRightToLeft, isUnspaced, readable } from './glyph-text.js';
import { joinedLines, type Line } from './line-ends.js';
import { blocksOf, largest, median, type Block, type Row } from './reading-order.js';
import { segmentsOf, type Segment } from './segments.js';
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
  return upright(runs).flatMap((group) => blocksOf(segmentsOf(group)).flatMap(linesOfBlock));
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

function linesOfBlock(block: Block): readonly Line[] {
  const steps = block.slice(1).map((row, index) => stepBetween(block[index] ?? row, row));
  const usual = median(steps.filter((step) => step > 0));
  const left = median(block.map(leftOf));
  const right = largest(block.flat().map((segment) => segment.right));
  return block.map((row, index) => {
    const next = block[index + 1];
    const text = readable(rowText(row));
    if (next === undefined) return { text, after: 'block' };
    const isFurther = (steps[index] ?? 0) > usual * PARAGRAPH_STEP;
    if (isFurther || isOtherSize(row, next) || isIndented(row, next, left)) return { text, after: 'paragraph' };
    return { text, after: isWrapped(row, next, right) ? 'nothing' : 'line' };
  });
}

function stepBetween(upper: Row, lower: Row): number {
  return baselineOf(lower) - baselineOf(upper);
}

function baselineOf(row: Row): number {
  return largest(row.map(({ baseline }) => baseline));
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

function leftOf(row: Row): number {
  return row[0]?.left ?? 0;
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

function rowText(row: Row): string {
  const isBackwards = row.length > 1 && isRightToLeft(row.map(({ text }) => text).join(''));
  let text = '';
  let before: Segment | null = null;
  for (const segment of isBackwards ? row.toReversed() : row) {
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
