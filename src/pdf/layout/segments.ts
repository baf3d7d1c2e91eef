/**
 * Joins the runs of a page to segments: parts of a line without a gap wider than an em. Later steps decide whether such a
 * gap is a gutter, separates the cells of a table, or is only a wide space.
 */
import { elementAt } from '../../system/element.js';
import type { Piece } from './direction.js';
import { inReadingOrder, isLineRightToLeft } from './direction.js';
import { isUnspaced } from './glyph-text.js';
import type { TextRun } from './text-run.js';

/** Lengths in points, y downwards. */
export interface Segment {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  /** Of the largest run, so that indices and footnote marks do not move it. */
  readonly baseline: number;
  /** Em of the largest run. */
  readonly size: number;
}

// All lengths are ems of the larger neighbour.

/** The widest space within a segment. */
const WIDEST_SPACE = 1;
/** The widest space between runs that were not drawn one after the other, because columns may be close to each other. */
const WIDEST_STRAY_SPACE = 0.45;
/** The narrowest space; a narrower gap is kerning. Justified lines in Times have spaces of 0.18. */
const NARROWEST_SPACE = 0.16;
/** The narrowest space beside a letter of a script without spaces, which often has a gap of 0.25 to other scripts. */
const NARROWEST_UNSPACED = 0.4;
/** The largest overlap of two runs, by negative kerning or by accents drawn over their letter. */
const DEEPEST_OVERLAP = 0.6;
/** The largest difference between baselines in a line, and the largest shift of an index or exponent. */
const BASELINE_DRIFT = 0.2;
const SCRIPT_DRIFT = 0.6;
/** Number of earlier runs with the same text among which a duplicate is sought, against hostile pages. */
const CANDIDATES = 8;
/** A run is an index or exponent below this share of the em of its neighbour. */
const SCRIPT_SIZE = 0.85;

/** Number of open segments from which finished ones are removed. Affects speed only. */
const OPEN_BEFORE_CHECK = 32;

interface Placed extends TextRun {
  /** Place in drawing order. */
  readonly order: number;
}

interface Growing {
  readonly runs: Placed[];
  right: number;
  baseline: number;
  size: number;
}

/** The segments of upright runs, in any order. Blank runs only separate others. */
export function segmentsOf(runs: readonly TextRun[], isPageRightToLeft: boolean): readonly Segment[] {
  const placed = runs.map((run, order) => ({ ...run, order })).filter(isUsable);
  const done: Growing[] = [];
  let open: Growing[] = [];
  let [widest, crowd] = [0, OPEN_BEFORE_CHECK];
  for (const run of withoutDuplicates(placed).sort((one, other) => one.x - other.x || one.order - other.order)) {
    widest = Math.max(widest, run.size);
    if (open.length > crowd) {
      open = stillOpen(open, run.x - widest * WIDEST_SPACE, done);
      crowd = open.length + OPEN_BEFORE_CHECK;
    }
    const home = nearest(open, run);
    if (home === null) open.push({ runs: [run], right: run.x + run.width, baseline: run.baseline, size: run.size });
    else grow(home, run);
  }
  return [...done, ...open].map((each) => finished(each, isPageRightToLeft)).filter(({ text }) => text.trim() !== '');
}

/** The segments that later runs may still join. The others move to `done`. */
function stillOpen(open: readonly Growing[], reach: number, done: Growing[]): Growing[] {
  return open.filter((each) => {
    if (each.right < reach) done.push(each);
    return each.right >= reach;
  });
}

/** Excludes invalid runs, and blank runs wider than a space, by which some programs move to a cell or a column. */
function isUsable({ text, x, baseline, width, size }: TextRun): boolean {
  if (![x, baseline, width, size].every(Number.isFinite) || size <= 0 || width < 0) return false;
  return text.trim() !== '' || width <= size * WIDEST_SPACE;
}

/** Removes duplicates: some programs draw a text twice, slightly apart, to make it bold or to give it a shadow. */
function withoutDuplicates(runs: readonly Placed[]): Placed[] {
  const seen = new Map<string, Placed[]>();
  return runs.filter((run) => {
    const sameTexts = seen.get(run.text);
    if (sameTexts === undefined) return seen.set(run.text, [run]);
    const near = run.size * 0.12;
    const isDuplicate = sameTexts
      .slice(-CANDIDATES)
      .some(({ x, baseline }) => Math.abs(x - run.x) < near && Math.abs(baseline - run.baseline) < near);
    if (!isDuplicate) sameTexts.push(run);
    return !isDuplicate;
  });
}

function nearest(open: readonly Growing[], run: Placed): Growing | null {
  let best: Growing | null = null;
  for (const each of open) {
    if (!fits(each, run)) continue;
    if (best === null || drift(each, run) < drift(best, run)) best = each;
  }
  return best;
}

function fits(segment: Growing, run: Placed): boolean {
  const em = Math.max(segment.size, run.size);
  const gap = run.x - segment.right;
  if (gap > em * WIDEST_SPACE || gap < -em * DEEPEST_OVERLAP) return false;
  const isStray = Math.abs(run.order - elementAt(segment.runs, -1).order) > 3;
  if (isStray && gap > em * WIDEST_STRAY_SPACE) return false;
  const smaller = Math.min(segment.size, run.size);
  if (drift(segment, run) <= smaller * BASELINE_DRIFT) return true;
  return smaller < em * SCRIPT_SIZE && drift(segment, run) <= em * SCRIPT_DRIFT && gap <= em / 2;
}

function drift(segment: Growing, run: TextRun): number {
  return Math.abs(segment.baseline - run.baseline);
}

function grow(segment: Growing, run: Placed): void {
  segment.runs.push(run);
  segment.right = Math.max(segment.right, run.x + run.width);
  if (run.size <= segment.size || run.text.trim() === '') return;
  segment.size = run.size;
  segment.baseline = run.baseline;
}

function finished({ runs, right, baseline, size }: Growing, isPageRightToLeft: boolean): Segment {
  return { text: textOf(runs, isPageRightToLeft), left: elementAt(runs, 0).x, right, baseline, size };
}

/** The text of runs, sorted from left to right, in reading order with spaces for gaps. */
function textOf(runs: readonly TextRun[], isPageRightToLeft: boolean): string {
  if (runs.length === 1) return elementAt(runs, 0).text;
  const pieces = runs.map((run) => ({ ...run, left: run.x, right: run.x + run.width }));
  const isRightToLeft = isLineRightToLeft(pieces, isPageRightToLeft);
  let text = '';
  let before: Piece | null = null;
  for (const group of inReadingOrder(pieces, isRightToLeft)) {
    const whole = joined(group);
    if (before !== null) text += spaceBetween(before, whole);
    text += group
      .map((piece, at) => (at === 0 ? '' : spaceBetween(elementAt(group, at - 1), piece)) + piece.text)
      .join('');
    before = whole;
  }
  return text;
}

/** One piece for a group of pieces. */
function joined(group: readonly Piece[]): Piece {
  return group.reduce((whole, { text, left, right, size }) => ({
    text: whole.text + text,
    left: Math.min(whole.left, left),
    right: Math.max(whole.right, right),
    size: Math.min(whole.size, size),
  }));
}

/** The space between two pieces in reading order, or ''. */
function spaceBetween(first: Piece, second: Piece): string {
  const gap = Math.max(first.left, second.left) - Math.min(first.right, second.right);
  const isBesideUnspaced = isUnspaced(first.text.at(-1) ?? '') || isUnspaced(second.text.at(0) ?? '');
  const narrowest = isBesideUnspaced ? NARROWEST_UNSPACED : NARROWEST_SPACE;
  return gap > narrowest * Math.min(first.size, second.size) ? ' ' : '';
}
