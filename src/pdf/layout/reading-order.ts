/**
 * The order in which the segments of a page are read. Columns of prose (columns.ts) are read one after the other,
 * tables and forms row by row. Bands are read from the top, and each column in the same way again, so that three
 * columns are two and one.
 */
import { columnsOf } from './columns.js';
import { isRightToLeft } from './direction.js';
import type { Row } from './rows.js';
import { rowsOf } from './rows.js';
import type { Segment } from './segments.js';

/** Rows that belong together, from the top. */
export type Block = readonly Row[];

/** Most levels of columns within columns: a bound against hostile pages. */
const DEEPEST = 6;

/** The blocks of a page in reading order. */
export function blocksOf(segments: readonly Segment[], depth = 0): readonly Block[] {
  const parts = depth < DEEPEST ? columnsOf(segments) : null;
  if (parts === null) return segments.length === 0 ? [] : [rowsOf(segments)];
  return parts.flatMap((part) => {
    if (!part.isColumns) return blocksOf(part.segments, depth + 1);
    const { left, right } = part;
    const isBackwards = isRightToLeft([...left, ...right].map(({ text }) => text).join(''));
    const columns = isBackwards ? [right, left] : [left, right];
    return columns.flatMap((column) => blocksOf(column, depth + 1));
  });
}
