/**
 * The order in which the segments of a page are read. Columns of prose are read one after the other, tables and forms
 * row by row. A gutter is found by what it parts: on both sides of it several lines of prose, whole bands of the page
 * high; what crosses it (titles, wide figures) ends a band. Bands are read from the top, and each column in the same
 * way again, so that three columns are two and one.
 */
import { elementAt, present } from '../../system/element.js';
import { isUnspaced } from './glyph-text.js';
import type { Segment } from './segments.js';

/** Segments on one baseline, from left to right. */
export type Row = readonly Segment[];
/** Rows that belong together, from the top. */
export type Block = readonly Row[];

/** Lines there must be on each side of a gutter. */
const LINES_OF_A_COLUMN = 3;
/** Characters the middle line of a column has at least; letters of scripts without spaces count double. */
const CHARACTERS_OF_A_LINE = 15;
/** A line is full from this share of the widest line that begins where it does. */
const FULL = 0.7;
/** Share of full lines that makes prose. Cells of a table are of any length, lines of prose are not. */
const FULL_LINES = 0.55;
/** Half of the narrowest gutter, and the step of the search, in ems. */
const HALF_GUTTER = 0.2;
const STEP = 0.4;
/** Baselines of a row differ by up to this share of the em. */
const ROW_DRIFT = 0.35;
/** Gutters tried on a page, and columns in columns looked for: bounds against pages made to be slow. */
const MOST_GUTTERS = 400;
const DEEPEST = 6;

/** The blocks of a page in reading order. */
export function blocksOf(segments: readonly Segment[], depth = 0): readonly Block[] {
  const columns = depth < DEEPEST ? bestColumns(segments) : null;
  if (columns === null) return segments.length === 0 ? [] : [rowsOf(segments)];
  return columns.flatMap((part) => {
    if (part.isColumns) return [...blocksOf(part.left, depth + 1), ...blocksOf(part.right, depth + 1)];
    return blocksOf(part.segments, depth + 1);
  });
}

type Part =
  | { readonly isColumns: true; readonly left: readonly Segment[]; readonly right: readonly Segment[] }
  | { readonly isColumns: false; readonly segments: readonly Segment[] };

/** The page cut at the gutter that parts the most lines; null when there is none. */
function bestColumns(segments: readonly Segment[]): readonly Part[] | null {
  if (segments.length < 2 * LINES_OF_A_COLUMN) return null;
  const sorted = segments.toSorted((one, other) => one.baseline - other.baseline);
  const em = median(segments.map(({ size }) => size));
  const [from, to] = [-largest(sorted.map(({ left }) => -left)), largest(sorted.map(({ right }) => right))];
  const step = Math.max(em * STEP, (to - from) / MOST_GUTTERS);
  const half = em * HALF_GUTTER;
  const ends = sorted.map(({ right }) => right).sort((one, other) => one - other);
  const starts = sorted.map(({ left }) => left).sort((one, other) => one - other);
  let best: { readonly parts: readonly Part[]; readonly lines: number } | null = null;
  for (let gutter = from + step; gutter < to; gutter += step) {
    // Most places have nothing on one side: the third line from the left ends, and that from the right begins, beyond.
    if ((ends[LINES_OF_A_COLUMN - 1] ?? to) > gutter - half) continue;
    if ((starts.at(-LINES_OF_A_COLUMN) ?? from) < gutter + half) break;
    const parts = partsAt(sorted, gutter, half);
    const lines = parts.reduce((sum, part) => sum + (part.isColumns ? part.left.length + part.right.length : 0), 0);
    if (lines > (best?.lines ?? 0)) best = { parts, lines };
  }
  return best?.parts ?? null;
}

/** Bands from the top: columns where a gutter holds, everything in between as it is. */
function partsAt(sorted: readonly Segment[], gutter: number, half: number): readonly Part[] {
  const parts: Part[] = [];
  let plain: Segment[] = [];
  let band: Segment[] = [];
  const endBand = (): void => {
    const left = band.filter(({ right }) => right <= gutter - half);
    const right = band.filter((each) => each.left >= gutter + half);
    if (areColumns(left, right)) {
      if (plain.length > 0) parts.push({ isColumns: false, segments: plain });
      plain = [];
      parts.push({ isColumns: true, left, right });
    } else plain = plain.concat(band);
    band = [];
  };
  for (const segment of sorted) {
    if (segment.right <= gutter - half || segment.left >= gutter + half) {
      band.push(segment);
      continue;
    }
    endBand();
    plain.push(segment);
  }
  endBand();
  if (plain.length > 0) parts.push({ isColumns: false, segments: plain });
  return parts;
}

/** Two sides are columns when both are prose and stand side by side. Both are sorted from the top. */
function areColumns(left: readonly Segment[], right: readonly Segment[]): boolean {
  if (left.length < LINES_OF_A_COLUMN || right.length < LINES_OF_A_COLUMN) return false;
  const [top, bottom] = [Math.max(topOf(left), topOf(right)), Math.min(bottomOf(left), bottomOf(right))];
  const shorter = Math.min(bottomOf(left) - topOf(left), bottomOf(right) - topOf(right));
  return bottom - top >= shorter / 2 && isProse(left) && isProse(right);
}

function topOf(sorted: readonly Segment[]): number {
  return elementAt(sorted, 0).baseline;
}

function bottomOf(sorted: readonly Segment[]): number {
  return elementAt(sorted, -1).baseline;
}

function isProse(segments: readonly Segment[]): boolean {
  if (median(segments.map(({ text }) => breadthOf(text))) < CHARACTERS_OF_A_LINE) return false;
  const widest = new Map<number, number>();
  const column = ({ left, size }: Segment): number => Math.round(left / (size * 2));
  for (const each of segments) {
    const key = column(each);
    widest.set(key, Math.max(widest.get(key) ?? 0, each.right - each.left));
  }
  const full = segments.filter(
    (each) => each.right - each.left >= FULL * present(widest.get(column(each)), 'width of a column'),
  );
  return full.length >= segments.length * FULL_LINES;
}

function breadthOf(text: string): number {
  if (text.length >= CHARACTERS_OF_A_LINE) return text.length;
  return [...text].reduce((sum, character) => sum + (isUnspaced(character) ? 2 : 1), 0);
}

/** Rows from the top. */
function rowsOf(segments: readonly Segment[]): Block {
  const rows: { readonly baseline: number; readonly size: number; readonly segments: Segment[] }[] = [];
  for (const segment of segments.toSorted((one, other) => one.baseline - other.baseline || one.left - other.left)) {
    const row = rows.at(-1);
    const drift = row === undefined ? Infinity : segment.baseline - row.baseline;
    if (row !== undefined && drift <= ROW_DRIFT * Math.min(row.size, segment.size)) row.segments.push(segment);
    else rows.push({ baseline: segment.baseline, size: segment.size, segments: [segment] });
  }
  return rows.map((row) => row.segments.sort((one, other) => one.left - other.left));
}

/** The middle value; 0 of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

/** The largest value, however many there are; -Infinity of none. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}
