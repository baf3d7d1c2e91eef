/**
 * Cuts pages into chunks, the unit that is embedded, searched and quoted. Pure, except that it yields to other work.
 */
import type { System } from '../system/system.js';
import { present } from '../system/element.js';

/** UTF-16 units cut in one turn of the event loop, about 2 ms. A page is cut in one turn. */
const UNITS_AT_ONCE = 200_000;

/** As `chunk`, but yields to other work. */
export async function chunkedPages(
  pages: readonly { readonly page: number; readonly text: string }[],
  { after }: Pick<System, 'after'>,
): Promise<readonly Chunk[]> {
  const chunks: Chunk[] = [];
  let units = 0;
  for (const each of pages) {
    for (const piece of chunk([each])) chunks.push(piece);
    units += each.text.length;
    if (units < UNITS_AT_ONCE) continue;
    units = 0;
    await new Promise<void>((resolve) => void after(0, resolve));
  }
  return chunks;
}

/**
 * A part of one page, so that a citation has one page. `page` counts from 1. `from` and `to` (exclusive) are offsets
 * in the text of the page, in UTF-16 code units.
 */
export interface Chunk {
  readonly page: number;
  readonly from: number;
  readonly to: number;
  /** Exactly the page's text from `from` to `to`. */
  readonly text: string;
}

/**
 * Longest chunk, except the last one of a page, in code units: about 200 words or 300 tokens. A search finds smaller
 * chunks more exactly; a reader understands larger ones better.
 */
export const CHUNK_UNITS = 1_200;
/** Approximate overlap of two chunks in code units, so that one of them has the whole sentence at the cut. */
const OVERLAP_UNITS = 150;

/** Earliest cut, as a share of a chunk. */
const EARLIEST_CUT = 0.5;
/** Longest last chunk of a page, as a share of a chunk. It avoids a last chunk of a few words. */
const LONGEST_LAST = 1.25;
/** Longest overlap, as a multiple of OVERLAP_UNITS, if it begins with a sentence. */
const LONGEST_OVERLAP = 1.4;

/** Code units that are searched for the end of a grapheme. Emoji families have 25. */
const LONGEST_GRAPHEME = 64;
/** Created with the first document, because it would take a thirtieth of the start. */
let graphemes: Intl.Segmenter | null = null;

/** Kinds of cuts, from best to worst; the cut is after the match. */
const CUTS = [
  /\n\n+/gu,
  /(?:[.!?…]["'»”’)\]]*\s+(?=["'«“‘([]?[\p{Lu}\p{N}])|[。！？]["'」』）]*\n?)/gu,
  /\n/gu,
  /\s+/gu,
];

/**
 * The chunks of pages in order. Equal pages give equal chunks. The chunks cover every character of a page, and each
 * begins within or at the end of the previous one. A cut never splits a surrogate pair, nor a grapheme (a character
 * as readers see it) unless it is longer than half a chunk. An empty page has no chunk.
 */
export function chunk(pages: Iterable<{ readonly page: number; readonly text: string }>): readonly Chunk[] {
  return [...pages].flatMap(({ page, text }) =>
    spansOf(text).map(({ from, to }) => ({ page, from, to, text: text.slice(from, to) })),
  );
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The text of a page, and the start of the current chunk in it. */
interface ChunkStart {
  readonly text: string;
  readonly since: number;
}

function spansOf(text: string): readonly Span[] {
  const spans: Span[] = [];
  let from = 0;
  while (text.length - from > CHUNK_UNITS * LONGEST_LAST) {
    const to = cut({ text, since: from }, { from: from + CHUNK_UNITS * EARLIEST_CUT, to: from + CHUNK_UNITS });
    spans.push({ from, to });
    from = overlapFrom({ text, since: from }, to);
  }
  if (from < text.length) spans.push({ from, to: text.length });
  return spans;
}

/** The end of a chunk: the last cut of the best kind within the range. */
function cut({ text, since }: ChunkStart, range: Span): number {
  for (const kind of CUTS) {
    const place = placesAfter(text, range, kind).findLast((at) => graphemeAt(text, at, since) === at);
    if (place !== undefined) return place;
  }
  return wholeAtOrBefore(range.to, range.from, { text, since });
}

/** The start of the next chunk: the first sentence, or else the first word, in the overlap. */
function overlapFrom({ text, since }: ChunkStart, to: number): number {
  const [, sentence, , word] = CUTS;
  const wide = { from: to - OVERLAP_UNITS * LONGEST_OVERLAP, to: to - OVERLAP_UNITS / 3 };
  const narrow = { from: to - OVERLAP_UNITS, to: to - 1 };
  const places = [...placesAfter(text, wide, sentence), ...placesAfter(text, narrow, word)];
  return (
    places.find((at) => graphemeAt(text, at, since) === at) ??
    wholeAtOrBefore(narrow.from, narrow.from - OVERLAP_UNITS, { text, since })
  );
}

/** The ends of the matches within a range. */
function placesAfter(text: string, { from, to }: Span, kind: RegExp | undefined): readonly number[] {
  if (kind === undefined) return [];
  const start = Math.floor(from);
  // Lookaheads may need a little text after the range.
  const part = text.slice(start, Math.ceil(to) + 2);
  return [...part.matchAll(kind)].map(({ 0: match, index }) => start + index + match.length).filter((at) => at <= to);
}

function wholeAtOrBefore(at: number, earliest: number, { text, since }: ChunkStart): number {
  const place = graphemeAt(text, Math.floor(at), since);
  if (place > earliest) return place;
  return isLowSurrogate(text, Math.floor(at)) ? Math.floor(at) - 1 : Math.floor(at);
}

/**
 * The start of the grapheme with the code unit at this place. The segmentation begins at the start of the chunk,
 * because two flags in a row can be separated only from their start.
 */
function graphemeAt(text: string, at: number, since: number): number {
  if (at >= text.length) return text.length;
  const near = text.slice(since, at + LONGEST_GRAPHEME);
  graphemes ??= new Intl.Segmenter('und');
  return since + present(graphemes.segment(near).containing(at - since), 'grapheme there').index;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
