/**
 * Finds the columns of a page. A gutter is a vertical strip beside a straight edge that is empty over many lines, with
 * prose (prose.ts) on both sides, or with prose on one side and text with some prose on the other. A segment across the
 * gutter (a title, a wide figure) ends a band of columns. Gaps within lines do not matter, so the stretched spaces of
 * justified text do not hide a gutter.
 */
import { isMostlyRightToLeft } from './direction.js';
import { areCells, EDGE_DRIFT, HALF_GUTTER, hasProse, isProse, LINES_OF_A_COLUMN } from './prose.js';
import type { Row } from './rows.js';
import { median, middleOf, rowsOf, rowsOfSorted } from './rows.js';
import type { Segment } from './segments.js';

/** Rows that are read together, from the top. */
export type Block = readonly Row[];

/** Largest depth of columns within columns, against hostile pages. */
const DEEPEST = 6;

/**
 * The blocks of a page in reading order: columns of prose one after the other, tables and forms row by row. Each column is
 * cut again, so that three columns are two and one.
 */
export function blocksOf(segments: readonly Segment[], depth = 0): readonly Block[] {
  const parts = depth < DEEPEST ? columnsOf(segments) : null;
  if (parts === null) return segments.length === 0 ? [] : [rowsOf(segments)];
  return parts.flatMap((part) => {
    if (!part.isColumns) return blocksOf(part.segments, depth + 1);
    const { left, right } = part;
    const isRightToLeft = isMostlyRightToLeft([...left, ...right].map(({ text }) => text).join(''));
    const columns = isRightToLeft ? [right, left] : [left, right];
    return columns.flatMap((column) => blocksOf(column, depth + 1));
  });
}

/** A band of the page. */
type Band =
  | { readonly isColumns: true; readonly left: readonly Segment[]; readonly right: readonly Segment[] }
  | { readonly isColumns: false; readonly segments: readonly Segment[] };

/** Distances before a straight edge at which a gutter is tried, in ems. */
const BEFORE_EDGE = [0.2, 0.6, 1];
/** Largest number of edges tried on a page, against hostile pages. */
const MOST_EDGES = 60;

/** The page, cut at the gutter that separates the most lines, or null if it has no gutter. */
function columnsOf(segments: readonly Segment[]): readonly Band[] | null {
  if (segments.length < 2 * LINES_OF_A_COLUMN) return null;
  const sorted = segments.toSorted((one, other) => one.baseline - other.baseline || one.left - other.left);
  const em = median(segments.map(({ size }) => size));
  let best: { readonly parts: readonly Band[]; readonly lines: number } | null = null;
  for (const gutter of guttersOf(sorted, em)) {
    const parts = partsAt(sorted, gutter, em * HALF_GUTTER);
    const lines = parts.reduce(
      (sum, part) => sum + (part.isColumns ? Math.min(part.left.length, part.right.length) : 0),
      0,
    );
    if (lines > (best?.lines ?? 0)) best = { parts, lines };
  }
  return best?.parts ?? null;
}

/** Places beside the edges at which the most segments begin. Right-to-left text begins at the right. */
function guttersOf(segments: readonly Segment[], em: number): readonly number[] {
  const isRightToLeft = isMostlyRightToLeft(segments.map(({ text }) => text).join(''));
  const sign = isRightToLeft ? -1 : 1;
  const starts = segments.map(({ left, right }) => (isRightToLeft ? -right : left)).sort((one, other) => one - other);
  const edges: { readonly at: number; count: number }[] = [];
  for (const at of starts) {
    const edge = edges.at(-1);
    if (edge !== undefined && at - edge.at <= em * EDGE_DRIFT) edge.count += 1;
    else edges.push({ at, count: 1 });
  }
  return edges
    .slice(1)
    .filter(({ count }) => count >= LINES_OF_A_COLUMN)
    .sort((one, other) => other.count - one.count)
    .slice(0, MOST_EDGES)
    .flatMap(({ at }) => BEFORE_EDGE.map((ems) => sign * (at - ems * em)));
}

/** Bands from the top: columns beside the gutter, and the segments between them. */
function partsAt(sorted: readonly Segment[], gutter: number, half: number): readonly Band[] {
  const parts: Band[] = [];
  let plain: Segment[] = [];
  let band: Segment[] = [];
  const endBand = (): void => {
    const left = band.filter((each) => middleOf(each) < gutter);
    const right = band.filter((each) => middleOf(each) >= gutter);
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

/** Whether two sides, each sorted from the top, are columns of prose. */
function areColumns(left: readonly Segment[], right: readonly Segment[]): boolean {
  if (left.length < LINES_OF_A_COLUMN || right.length < LINES_OF_A_COLUMN) return false;
  const [isLeftProse, isRightProse] = [isProse(left), isProse(right)];
  if (isLeftProse && isRightProse) return true;
  if (!isLeftProse && !isRightProse) return false;
  const [prose, other] = isLeftProse ? [left, right] : [right, left];
  return hasProse(other) && !areCells(rowsOfSorted(other), rowsOfSorted(prose));
}
