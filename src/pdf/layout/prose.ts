/** Distinguishes prose from tables: most lines of prose fill their column and begin at one edge. */
import { elementAt } from '../../system/element.js';
import { isMostlyRightToLeft } from './direction.js';
import type { Row } from './rows.js';
import { baselineOf, coveredOf, largest, leftOf, median, middleOf, rightOf, rowsOfSorted, widthOf } from './rows.js';
import type { Segment } from './segments.js';

/** Smallest number of lines of a column. */
export const LINES_OF_A_COLUMN = 3;
/** Smallest number of characters of the median line of a column. */
const CHARACTERS_OF_A_LINE = 15;
/** A side is prose from this share of its characters in columns of prose. */
const PROSE = 0.8;
/** A line is full from this share of the width of the longest line. */
const FULL = 0.7;
/** Smallest share of full lines in prose. The cells of a table have any length. */
const FULL_LINES = 0.55;
/** Smallest share, or number, of full lines in a column that also has code, formulas, figures or tables. */
const SOME_LINES = 0.3;
const ENOUGH_LINES = 8;
/** Smallest share of the lines of a column that begin at its edge. The others are indented. */
const STRAIGHT_LINES = 0.5;
/** Largest distance from the edge at which a line begins, in ems. */
export const EDGE_DRIFT = 0.3;
/** Half the width of the narrowest gutter, in ems. */
export const HALF_GUTTER = 0.2;
/** Largest share of the rows that cross the space between two cells, as headings of a table do. */
const CROSSING_ROWS = 0.15;
/** Rows beside prose are cells from this share of rows on the baselines of the prose. */
const SHARED_LINES = 0.6;
/** Largest difference between the baselines of two cells in a row, in ems. */
const CELL_DRIFT = 0.15;

/** Whether the segments of a side, sorted from the top, are prose in one or more columns. */
export function isProse(side: readonly Segment[]): boolean {
  const strips = stripsOf(side);
  const all = side.reduce((sum, { text }) => sum + text.length, 0);
  const prose = strips.filter(isColumnOfProse).flat();
  return prose.reduce((sum, { text }) => sum + text.length, 0) >= all * PROSE;
}

/** Whether a side has some lines of prose at its full width. */
export function hasProse(side: readonly Segment[]): boolean {
  const rows = rowsOfSorted(side);
  const width = largest(rows.map(widthOf));
  const dense = stripsOf(side)
    .flatMap(rowsOfSorted)
    .filter((row) => coveredOf(row) >= FULL * width && charactersOf(row) >= CHARACTERS_OF_A_LINE);
  return dense.length >= Math.min(rows.length * SOME_LINES, ENOUGH_LINES);
}

/** Whether rows may be the cells of a table beside cells of prose: most are on a baseline of the prose. */
export function areCells(rows: readonly Row[], prose: readonly Row[]): boolean {
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

/** The side, cut at every vertical strip that nearly all of its rows leave empty. */
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

/** Index of the first of ascending numbers that is larger than a value. */
function firstAbove(numbers: readonly number[], value: number): number {
  let [from, to] = [0, numbers.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elementAt(numbers, middle) > value) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Whether the lines are long enough, many are full and many begin at one edge. */
function isColumnOfProse(segments: readonly Segment[]): boolean {
  const rows = rowsOfSorted(segments);
  if (rows.length < LINES_OF_A_COLUMN) return false;
  if (median(rows.map(charactersOf)) < CHARACTERS_OF_A_LINE) return false;
  const width = largest(rows.map(widthOf));
  const full = rows.filter((row) => widthOf(row) >= FULL * width);
  return full.length >= rows.length * FULL_LINES && isStraight(rows);
}

function isStraight(rows: readonly Row[]): boolean {
  const isRightToLeft = isMostlyRightToLeft(rows.flatMap((row) => row.map(({ text }) => text)).join(''));
  const starts = rows.map(isRightToLeft ? rightOf : leftOf).sort((one, other) => one - other);
  const within = 2 * EDGE_DRIFT * median(rows.map((row) => elementAt(row, 0).size));
  let [most, from] = [0, 0];
  for (const [to, start] of starts.entries()) {
    while (start - elementAt(starts, from) > within) from += 1;
    most = Math.max(most, to - from + 1);
  }
  return most >= rows.length * STRAIGHT_LINES;
}

function charactersOf(row: Row): number {
  return row.reduce((sum, { text }) => sum + text.length, 0);
}
