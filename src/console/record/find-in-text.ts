/** Long texts in blocks that a page renders one by one, and the places of words in them. */

/** A part of a text. */
export interface TextBlock {
  /** Its place in the text, in UTF-16 units. */
  readonly from: number;
  readonly text: string;
}

/** Units of a block, which ends at the next line end. */
const BLOCK_UNITS = 4_000;
/** A block without a line end ends here, so that a text of one line has blocks, too. */
const MOST_UNITS = 16_000;

/** The blocks of a text, in order and without gaps. */
export function blocksOf(text: string): readonly TextBlock[] {
  const blocks: TextBlock[] = [];
  for (let from = 0; from < text.length;) {
    const end = endOf(text, from);
    blocks.push({ from, text: text.slice(from, end) });
    from = end;
  }
  return blocks;
}

function endOf(text: string, from: number): number {
  if (text.length - from <= BLOCK_UNITS) return text.length;
  const line = text.indexOf('\n', from + BLOCK_UNITS);
  const most = Math.min(from + MOST_UNITS, text.length);
  if (line >= 0 && line < most) return line + 1;
  if (most === text.length) return most;
  const space = text.lastIndexOf(' ', most);
  // A pair of surrogates stays whole.
  return space > from + BLOCK_UNITS ? space + 1 : most + (/[\uDC00-\uDFFF]/.test(text.charAt(most)) ? 1 : 0);
}

/** The place of words in a text: from inclusive, to exclusive. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

/** Most places that a search returns. */
export const MOST_PLACES = 10_000;

/** Where words stand in a text, in any case and with any space between them; at most {@link MOST_PLACES}. */
export function placesOf(text: string, words: string): readonly TextRange[] {
  const parts = words.trim().split(/\s+/u);
  if (parts[0] === '') return [];
  const pattern = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('\\s+');
  const places: TextRange[] = [];
  for (const { index, 0: found } of text.matchAll(new RegExp(pattern, 'giu'))) {
    places.push({ from: index, to: index + found.length });
    if (places.length === MOST_PLACES) break;
  }
  return places;
}
