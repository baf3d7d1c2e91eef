/**
 * Tells prose from tables by its lines. Lines of prose fill their column and begin at one edge, and the gaps between
 * stretched words stand anywhere. The gaps between the cells of a table stand above each other.
 */
import { elementAt } from '../../system/element.js';
import { isRightToLeft } from './direction.js';
import { isUnspaced } from './glyph-text.js';
import type { Row } from './rows.js';
import { baselineOf, coveredOf, leftOf, median, middleOf, rightOf, rowsOfSorted, widthOf } from './rows.js';
import type { Segment } from './segments.js';

/** Lines there must be in a column. */
export const LINES_OF_A_COLUMN = 3;
/** Characters the middle line of a column has at least; letters of scripts without spaces count double. */
const CHARACTERS_OF_A_LINE = 15;
/** Least share of the characters of a side that makes the side prose. */
const PROSE = 0.8;
/** The width of a column is the width that this share of its lines do not exceed: few lines stick out. */
const MOST_LINES = 0.95;
/** A line is full from this share of the width of its column. */
const FULL = 0.7;
/** Share of full lines that makes prose. Cells of a table are of any length, lines of prose are not. */
const FULL_LINES = 0.55;
/** Share or number of full lines in a column that holds code, formulas, figures or tables as well. */
const SOME_LINES = 0.3;
const ENOUGH_LINES = 8;
/** Share or number of the lines of a column that begin at its edge; the others are indented. */
const STRAIGHT_LINES = 0.5;
const ENOUGH_STRAIGHT_LINES = 5;
/** How far a straight line begins from the edge, in ems. */
export const EDGE_DRIFT = 0.3;
/** Half of the narrowest gutter, in ems. */
export const HALF_GUTTER = 0.2;
/** Share of the rows that may cross the space between two cells, as headings of a table do. */
const CROSSING_ROWS = 0.15;
/** Rows have cells when gaps make up this share of them, and this share of the gaps stands above other gaps. */
const MANY_GAPS = 0.1;
const SHARED_GAPS = 0.5;
/** Rows beside prose are cells if they are fewer than this, or if this share of them stands on lines of the prose. */
const FEW_ROWS = 6;
const SHARED_LINES = 0.6;
/** Rows that exceed the lines of the prose by this factor are parts of a figure, not cells. */
const MANY_ROWS = 1.5;
/** Baselines of cells in a row differ by up to this share of the em. */
const CELL_DRIFT = 0.15;

/** Whether a side is prose, in one column or in several. The cells of a table are columns that are not prose. */
export function isProse(side: readonly Segment[]): boolean {
  const strips = stripsOf(side);
  const all = side.reduce((sum, { text }) => sum + text.length, 0);
  const prose = strips.filter(isColumnOfProse).flat();
  return prose.reduce((sum, { text }) => sum + text.length, 0) >= all * PROSE;
}

/** Whether a side has lines of prose at its full width, between others. */
export function hasProse(side: readonly Segment[]): boolean {
  const rows = rowsOfSorted(side);
  const width = usualWidth(rows);
  const dense = stripsOf(side)
    .flatMap(rowsOfSorted)
    .filter((row) => coveredOf(row) >= FULL * width && breadthOf(row) >= CHARACTERS_OF_A_LINE);
  return dense.length >= Math.min(rows.length * SOME_LINES, ENOUGH_LINES);
}

/** Whether rows may be the cells of a table beside cells of prose: most of them stand on a line of it. */
export function areCells(rows: readonly Row[], prose: readonly Row[]): boolean {
  if (rows.length < FEW_ROWS) return true;
  if (rows.length > prose.length * MANY_ROWS) return false;
  const [fewer, more] = rows.length < prose.length ? [rows, prose] : [prose, rows];
  let line = 0;
  const shared = fewer.filter((row) => {
    const { baseline, size } = elementAt(row, 0);
    const drift = size * CELL_DRIFT;
    while (line < more.length && baselineOf(elementAt(more, line)) < baseline - drift) line += 1;
    return line < more.length && baselineOf(elementAt(more, line)) <= baseline + drift;
  });
  return shared.length >= fewer.length * SHARED_LINES;
}

/** A side cut at every strip that nearly all of its rows leave empty. */
function stripsOf(side: readonly Segment[]): readonly (readonly Segment[])[] {
  const most = rowsOfSorted(side).length * CROSSING_ROWS;
  const em = median(side.map(({ size }) => size));
  const steps = side
    .flatMap(({ left, right }) => [
      { at: left, change: 1 },
      { at: right + 2 * HALF_GUTTER * em, change: -1 },
    ])
    .sort((one, other) => one.at - other.at || other.change - one.change);
  const cuts: number[] = [];
  let [crossing, wasInside] = [0, false];
  for (const { at, change } of steps) {
    crossing += change;
    if (crossing > most) wasInside = true;
    else if (wasInside && change < 0) {
      cuts.push(at - HALF_GUTTER * em);
      wasInside = false;
    }
  }
  const strips = cuts.map((): Segment[] => []);
  for (const segment of side) strips[firstAbove(cuts, middleOf(segment))]?.push(segment);
  return strips.filter(({ length }) => length > 0);
}

/** Index of the first of ascending numbers that is larger. */
function firstAbove(numbers: readonly number[], value: number): number {
  let [from, to] = [0, numbers.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elementAt(numbers, middle) > value) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Lines long enough, most of them full, and most of them from one edge. */
function isColumnOfProse(segments: readonly Segment[]): boolean {
  const rows = rowsOfSorted(segments);
  if (rows.length < LINES_OF_A_COLUMN) return false;
  if (median(rows.map(breadthOf)) < CHARACTERS_OF_A_LINE) return false;
  const width = usualWidth(rows);
  const full = rows.filter((row) => widthOf(row) >= FULL * width);
  return full.length >= rows.length * FULL_LINES && isStraight(rows) && !haveCells(rows, width);
}

/** Whether the gaps in most rows stand above each other. Those of stretched words stand anywhere. */
function haveCells(rows: readonly Row[], width: number): boolean {
  let [shared, all] = [0, 0];
  for (const [index, row] of rows.entries()) {
    const next = rows[index + 1];
    if (next === undefined) break;
    const [gaps, others] = [gapsOf(row), gapsOf(next)];
    all += Math.max(lengthOf(gaps), lengthOf(others));
    shared += sharedLength(gaps, others);
  }
  return all > rows.length * width * MANY_GAPS && shared > all * SHARED_GAPS;
}

type Gap = Pick<Segment, 'left' | 'right'>;

/** The gaps between the segments of a row. */
function gapsOf(row: Row): readonly Gap[] {
  return row.slice(1).map((next, index) => ({ left: elementAt(row, index).right, right: next.left }));
}

/** Length that two sorted lists of gaps have in common. */
function sharedLength(gaps: readonly Gap[], others: readonly Gap[]): number {
  let [shared, from] = [0, 0];
  for (const gap of gaps) {
    while (from < others.length && elementAt(others, from).right <= gap.left) from += 1;
    for (let index = from; index < others.length && elementAt(others, index).left < gap.right; index += 1) {
      const other = elementAt(others, index);
      shared += Math.min(gap.right, other.right) - Math.max(gap.left, other.left);
    }
  }
  return shared;
}

function lengthOf(gaps: readonly Gap[]): number {
  return gaps.reduce((sum, { left, right }) => sum + right - left, 0);
}

function isStraight(rows: readonly Row[]): boolean {
  const isBackwards = isRightToLeft(rows.flatMap((row) => row.map(({ text }) => text)).join(''));
  const starts = rows.map(isBackwards ? rightOf : leftOf).sort((one, other) => one - other);
  const within = 2 * EDGE_DRIFT * median(rows.map((row) => elementAt(row, 0).size));
  let [most, from] = [0, 0];
  for (const [to, start] of starts.entries()) {
    while (start - elementAt(starts, from) > within) from += 1;
    most = Math.max(most, to - from + 1);
  }
  return most >= Math.min(rows.length * STRAIGHT_LINES, ENOUGH_STRAIGHT_LINES);
}

/** Width of the longest rows, without the few that stick out. */
function usualWidth(rows: readonly Row[]): number {
  const widths = rows.map(widthOf).sort((one, other) => one - other);
  return elementAt(widths, Math.ceil(widths.length * MOST_LINES) - 1);
}

function breadthOf(row: Row): number {
  const length = row.reduce((sum, { text }) => sum + text.length, 0);
  if (length >= CHARACTERS_OF_A_LINE) return length;
  return row.flatMap(({ text }) => [...text]).reduce((sum, character) => sum + (isUnspaced(character) ? 2 : 1), 0);
}
