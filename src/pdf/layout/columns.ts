/**
 * Finds the columns of a page. A gutter is a vertical strip beside a straight edge that stays empty over many lines,
 * with prose (prose.ts) on both sides, or on one side and other text with some prose on the other. What crosses the
 * gutter (titles, wide figures) ends a band of columns. Gaps within lines do not matter, so the stretched spaces of
 * justified text do not hide a gutter.
 */
import { elementAt } from '../../system/element.js';
import { isRightToLeft } from './direction.js';
import { areCells, EDGE_DRIFT, HALF_GUTTER, hasProse, isProse, LINES_OF_A_COLUMN } from './prose.js';
import { median, middleOf, rowsOfSorted } from './rows.js';
import type { Segment } from './segments.js';

/** A band of the page, from the top. */
export type Part =
  | { readonly isColumns: true; readonly left: readonly Segment[]; readonly right: readonly Segment[] }
  | { readonly isColumns: false; readonly segments: readonly Segment[] };

/** Distances before a straight edge at which the search tries a gutter, in ems. */
const BEFORE_EDGE = [0.2, 0.6, 1];
/** Most edges tried on a page: a bound against hostile pages. */
const MOST_EDGES = 60;

/** The page cut at the gutter that parts the most lines, or null if it has none. */
export function columnsOf(segments: readonly Segment[]): readonly Part[] | null {
  if (segments.length < 2 * LINES_OF_A_COLUMN) return null;
  const sorted = segments.toSorted((one, other) => one.baseline - other.baseline || one.left - other.left);
  const em = median(segments.map(({ size }) => size));
  let best: { readonly parts: readonly Part[]; readonly lines: number } | null = null;
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

/** Places beside the edges at which the most segments begin. Text that runs from right to left begins at the right. */
function guttersOf(segments: readonly Segment[], em: number): readonly number[] {
  const isBackwards = isRightToLeft(segments.map(({ text }) => text).join(''));
  const sign = isBackwards ? -1 : 1;
  const starts = segments.map(({ left, right }) => (isBackwards ? -right : left)).sort((one, other) => one - other);
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

/** Bands from the top: columns where the gutter holds, everything in between as it is. */
function partsAt(sorted: readonly Segment[], gutter: number, half: number): readonly Part[] {
  const parts: Part[] = [];
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

/** Whether two sides are columns: both stand side by side and hold prose. Both are sorted from the top. */
function areColumns(left: readonly Segment[], right: readonly Segment[]): boolean {
  if (left.length < LINES_OF_A_COLUMN || right.length < LINES_OF_A_COLUMN) return false;
  const [top, bottom] = [Math.max(topOf(left), topOf(right)), Math.min(bottomOf(left), bottomOf(right))];
  const shorter = Math.min(bottomOf(left) - topOf(left), bottomOf(right) - topOf(right));
  if (bottom - top < shorter / 2) return false;
  const [isLeftProse, isRightProse] = [isProse(left), isProse(right)];
  if (isLeftProse && isRightProse) return true;
  if (!isLeftProse && !isRightProse) return false;
  const [prose, other] = isLeftProse ? [left, right] : [right, left];
  return hasProse(other) && !areCells(rowsOfSorted(other), rowsOfSorted(prose));
}

function topOf(sorted: readonly Segment[]): number {
  return elementAt(sorted, 0).baseline;
}

function bottomOf(sorted: readonly Segment[]): number {
  return elementAt(sorted, -1).baseline;
}
