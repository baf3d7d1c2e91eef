/** The common output of both parsers: pieces of text with their positions. */

/**
 * A piece of text as one drawing operation put it on the page. Lengths are points (1/72 inch); x grows to the right,
 * y downwards, from any origin that is the same for the whole page.
 */
export interface TextRun {
  /** In reading order of its own script; never empty. */
  readonly text: string;
  /** Where its first glyph begins. */
  readonly x: number;
  /** What its glyphs stand on. */
  readonly baseline: number;
  /** Advance along the baseline. */
  readonly width: number;
  /** Height of the font, the em. */
  readonly size: number;
  /** Direction of the baseline in degrees, 0 to 359, counter-clockwise; 0 is upright text. */
  readonly angle: number;
}

/** The pages of a document from the first, each the runs of a page in drawing order. */
export type PagesOfRuns = readonly (readonly TextRun[])[];
