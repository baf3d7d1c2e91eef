/**
 * Puts the runs of a page together to segments: pieces of lines that are certainly read at one go. What stands in
 * between, spaces of more than an em, is for the reading order to decide: a gutter, the cells of a table, or nothing.
 */
import { elementAt } from '../../system/element.js';
import type { Piece } from './direction.js';
import { inReadingOrder, isLineBackwards } from './direction.js';
import { isUnspaced } from './glyph-text.js';
import type { TextRun } from './text-run.js';

/** Lengths in points, y downwards. */
export interface Segment {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  /** Of its largest run: indices and footnote marks do not move it. */
  readonly baseline: number;
  /** Em of its largest run. */
  readonly size: number;
}

/** All in ems of the larger neighbour. The widest space within a segment; more is a gutter or a cell. */
const WIDEST_SPACE = 1;
/** The same between runs that were not drawn one after the other: columns may stand closer than a wide space is. */
const WIDEST_STRAY_SPACE = 0.45;
/** The narrowest space; less is kerning. Justified lines in Times shrink theirs to about 0.18. */
const NARROWEST_SPACE = 0.16;
/** Beside a letter of a script without spaces: a gap of up to a quarter is only air between scripts. */
const NARROWEST_UNSPACED = 0.4;
/** How far a run may reach back into the one before: negative kerning, and accents drawn over their letter. */
const DEEPEST_OVERLAP = 0.6;
/** How far baselines may differ in a line, and how far a smaller run may be raised or lowered. */
const BASELINE_DRIFT = 0.2;
const SCRIPT_DRIFT = 0.6;
/** Runs of the same text among which a double is looked for: it is drawn right after, or after a line. */
const NAMESAKES = 8;
/** A run is an index or exponent below this share of its neighbour's em. */
const SCRIPT_SIZE = 0.85;

/** Open segments that may gather before those out of reach are closed: affects speed only. */
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

/** Segments of upright runs, in no order. Blank runs only separate others. A line of both directions runs as its page. */
export function segmentsOf(runs: readonly TextRun[], isPageBackwards: boolean): readonly Segment[] {
  const placed = runs.map((run, order) => ({ ...run, order })).filter(isUsable);
  const done: Growing[] = [];
  let open: Growing[] = [];
  let [widest, crowd] = [0, OPEN_BEFORE_CHECK];
  for (const run of withoutDoubles(placed).sort((one, other) => one.x - other.x || one.order - other.order)) {
    widest = Math.max(widest, run.size);
    if (open.length > crowd) {
      open = stillOpen(open, run.x - widest * WIDEST_SPACE, done);
      crowd = open.length + OPEN_BEFORE_CHECK;
    }
    const home = nearest(open, run);
    if (home === null) open.push({ runs: [run], right: run.x + run.width, baseline: run.baseline, size: run.size });
    else grow(home, run);
  }
  return [...done, ...open].map((each) => finished(each, isPageBackwards)).filter(({ text }) => text.trim() !== '');
}

/** Those that later runs may still join; the others are done. */
function stillOpen(open: readonly Growing[], reach: number, done: Growing[]): Growing[] {
  return open.filter((each) => {
    if (each.right < reach) done.push(each);
    return each.right >= reach;
  });
}

/** Blank runs wider than a space are how some programs jump to a cell or a column: they join nothing. */
function isUsable({ text, x, baseline, width, size }: TextRun): boolean {
  if (![x, baseline, width, size].every(Number.isFinite) || size <= 0 || width < 0) return false;
  return text.trim() !== '' || width <= size * WIDEST_SPACE;
}

/** Some programs draw a text twice, a hair apart, to make it bold or give it a shadow. */
function withoutDoubles(runs: readonly Placed[]): Placed[] {
  const seen = new Map<string, Placed[]>();
  return runs.filter((run) => {
    const namesakes = seen.get(run.text);
    if (namesakes === undefined) return seen.set(run.text, [run]);
    const near = run.size * 0.12;
    const isDouble = namesakes
      .slice(-NAMESAKES)
      .some(({ x, baseline }) => Math.abs(x - run.x) < near && Math.abs(baseline - run.baseline) < near);
    if (!isDouble) namesakes.push(run);
    return !isDouble;
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

function finished({ runs, right, baseline, size }: Growing, isPageBackwards: boolean): Segment {
  return { text: textOf(runs, isPageBackwards), left: elementAt(runs, 0).x, right, baseline, size };
}

/** The text of runs that are sorted from left to right: in reading order, with spaces for gaps. */
function textOf(runs: readonly TextRun[], isPageBackwards: boolean): string {
  if (runs.length === 1) return elementAt(runs, 0).text;
  const pieces = runs.map((run) => ({ ...run, left: run.x, right: run.x + run.width }));
  const isBackwards = isLineBackwards(pieces, isPageBackwards);
  let text = '';
  let before: Piece | null = null;
  for (const group of inReadingOrder(pieces, isBackwards)) {
    const whole = wholeOf(group);
    if (before !== null) text += spaceBetween(before, whole);
    text += group
      .map((piece, at) => (at === 0 ? '' : spaceBetween(elementAt(group, at - 1), piece)) + piece.text)
      .join('');
    before = whole;
  }
  return text;
}

/** A group of pieces as one. */
function wholeOf(group: readonly Piece[]): Piece {
  return group.reduce((whole, { text, left, right, size }) => ({
    text: whole.text + text,
    left: Math.min(whole.left, left),
    right: Math.max(whole.right, right),
    size: Math.min(whole.size, size),
  }));
}

/** A space or nothing between two pieces, the second read after the first. */
function spaceBetween(first: Piece, second: Piece): string {
  const gap = Math.max(first.left, second.left) - Math.min(first.right, second.right);
  const isBesideUnspaced = isUnspaced(first.text.at(-1) ?? '') || isUnspaced(second.text.at(0) ?? '');
  const narrowest = isBesideUnspaced ? NARROWEST_UNSPACED : NARROWEST_SPACE;
  return gap > narrowest * Math.min(first.size, second.size) ? ' ' : '';
}
