/**
 * The output of both parsers: the text that one drawing operation puts on the page. Lengths are points (1/72 inch). x grows
 * to the right and y downwards, from one origin for the page.
 */
export interface TextRun {
  /** In the reading order of its script; never empty. */
  readonly text: string;
  /** The start of its first glyph. */
  readonly x: number;
  readonly baseline: number;
  /** Length along the baseline. */
  readonly width: number;
  /** Height of the font, the em. */
  readonly size: number;
  /** Direction of the baseline in degrees, 0 to 359, counter-clockwise; 0 is upright text. */
  readonly angle: number;
}

/** For each page of a document, its runs in drawing order. */
export type PagesOfRuns = readonly (readonly TextRun[])[];
