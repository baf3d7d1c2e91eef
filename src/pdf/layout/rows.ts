/** Rows of a page and their measures. */
import { elementAt } from '../../system/element.js';
import type { Segment } from './segments.js';

/** Segments on one baseline, sorted from left to right. */
export type Row = readonly Segment[];

/** Largest difference between the baselines of a row, in ems. */
const ROW_DRIFT = 0.35;

/** Rows from the top. */
export function rowsOf(segments: readonly Segment[]): readonly Row[] {
  const sorted = segments.toSorted((one, other) => one.baseline - other.baseline || one.left - other.left);
  return rowsOfSorted(sorted);
}

/** Rows of segments that are sorted by their baselines. */
export function rowsOfSorted(sorted: readonly Segment[]): readonly Row[] {
  const rows: { readonly baseline: number; readonly size: number; readonly segments: Segment[] }[] = [];
  for (const segment of sorted) {
    const row = rows.at(-1);
    const drift = row === undefined ? Infinity : segment.baseline - row.baseline;
    if (row !== undefined && drift <= ROW_DRIFT * Math.min(row.size, segment.size)) row.segments.push(segment);
    else rows.push({ baseline: segment.baseline, size: segment.size, segments: [segment] });
  }
  return rows.map((row) => row.segments.sort((one, other) => one.left - other.left));
}

/** The lowest baseline of a row. */
export function baselineOf(row: Row): number {
  return largest(row.map(({ baseline }) => baseline));
}

/** Width of a row's segments, without the gaps between them. */
export function coveredOf(row: Row): number {
  return row.reduce((sum, { left, right }) => sum + right - left, 0);
}

export function widthOf(row: Row): number {
  return rightOf(row) - leftOf(row);
}

export function leftOf(row: Row): number {
  return elementAt(row, 0).left;
}

export function rightOf(row: Row): number {
  return largest(row.map(({ right }) => right));
}

export function middleOf({ left, right }: Pick<Segment, 'left' | 'right'>): number {
  return (left + right) / 2;
}

/** The median, or 0 without values. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

/** The largest of any number of values, or -Infinity without values. Math.max fails on very many arguments. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}
