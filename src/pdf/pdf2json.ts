/** The second parser, pdf2json. It blocks the calling thread, with some files for ever. */
import { Buffer } from 'node:buffer';
import type { Page, Text } from 'pdf2json';
import PDFParser from 'pdf2json';
import { fromDisplayOrder } from './layout/direction.js';
import type { PagesOfRuns, TextRun } from './layout/text-run.js';
import { median } from './layout/rows.js';

/** The runs of all pages. The caller must limit the time. @throws {Error} pdf2json fails */
export async function pdf2jsonRuns(bytes: Uint8Array): Promise<PagesOfRuns> {
  const pages = await parsedPages(bytes);
  return pages.map(({ Texts: texts }) => {
    const scales = scalesOf(texts);
    return texts.flatMap((text) => {
      const scale = scales.get(styleOf(text));
      return scale === undefined ? [] : runOf(text, scale);
    });
  });
}

function parsedPages(bytes: Uint8Array): Promise<readonly Page[]> {
  return new Promise((resolve, reject) => {
    const pages: Page[] = [];
    const parser = new PDFParser(null, false);
    parser.on('data', (page) => {
      if (page !== null) pages.push(page);
    });
    parser.on('pdfParser_dataReady', () => resolve(pages));
    parser.on('pdfParser_dataError', (failure) => {
      const cause = failure instanceof Error ? failure : failure.parserError;
      reject(new Error(`pdf2json gave up: ${String(cause)}`, { cause }));
    });
    // An exact copy: of a view, pdf2json reads from the start of its buffer.
    parser.parseBuffer(Buffer.from(new Uint8Array(bytes).buffer), 0);
  });
}

function runOf({ x, y, w, R }: Text, { width, size }: Scale): readonly TextRun[] {
  const run = R[0];
  if (run === undefined || run.T === '') return [];
  // pdf2json adds spaces to a single C or G. All other spaces come from the file.
  const text = fromDisplayOrder(run.T === ' C ' || run.T === ' G ' ? run.T.trim() : run.T);
  const angle = ((Math.round(run.RA ?? 0) % 360) + 360) % 360;
  // pdf2json subtracts 0.25 and 0.75 for its own viewer.
  return [{ text, x: (x + 0.25) * POINTS, baseline: (y + 0.75) * POINTS, width: w * width, size, angle }];
}

// The widths of texts. pdf2json gives positions on the page, but widths without the text matrix and the transformation of
// the page. In most files both are the identity, and the widths are right. In files with fonts of size 1, the font size is
// the scale. The distances between neighbours on a line show which holds: a text begins where the previous one ends.

/** Points per unit of length of pdf2json: 1.5 pixels are a point, 24 pixels a unit. */
const POINTS = 16;
/** Smallest number of pairs of neighbours from which a scale is computed. */
const ENOUGH_PAIRS = 4;
/** Quantile of the ratios of neighbours that is the scale: most pairs have a space between them, kerning reduces some. */
const QUANTILE = 0.1;

export interface Scale {
  /** Points per unit of width. */
  readonly width: number;
  /** Em in points. */
  readonly size: number;
}

/** The scale of each style of a page. Fonts of equal size and weight have one style. */
function scalesOf(texts: readonly Text[]): ReadonlyMap<string, Scale> {
  const styles = new Map<string, Text[]>();
  for (const text of texts) {
    const style = styleOf(text);
    const same = styles.get(style);
    if (same === undefined) styles.set(style, [text]);
    else same.push(text);
  }
  const ratios = ratiosOf(texts);
  return new Map([...styles].map(([style, same]) => [style, scaleOf(same, ratios.get(style) ?? [])]));
}

function styleOf({ R }: Text): string {
  return R[0]?.TS.join(' ') ?? '';
}

/** By style, the distances to the next text of the same style and line, as multiples of the width. */
function ratiosOf(texts: readonly Text[]): ReadonlyMap<string, readonly number[]> {
  const ratios = new Map<string, number[]>();
  for (const [index, next] of texts.entries()) {
    const text = texts[index - 1];
    if (text === undefined || text.y !== next.y || next.x <= text.x || text.w <= 0) continue;
    const style = styleOf(text);
    if (style !== styleOf(next)) continue;
    const ratio = ((next.x - text.x) * POINTS) / text.w;
    ratios.set(style, [...(ratios.get(style) ?? []).slice(-200), ratio]);
  }
  return ratios;
}

function scaleOf(texts: readonly Text[], ratios: readonly number[]): Scale {
  const size = sizeOf(texts[0]);
  // An average letter is half an em wide.
  const own = 2 * median(texts.map(({ w, R }) => w / Math.max(1, R[0]?.T.length ?? 1)));
  const followed = ratios.toSorted((one, other) => one - other)[Math.floor(ratios.length * QUANTILE)];
  const rules = [1, size].filter((scale) => isLikely(own * scale, size));
  if (followed === undefined || ratios.length < ENOUGH_PAIRS) {
    return { width: rules[0] ?? (own > 0 ? size / own : 1), size };
  }
  const fitting = rules.find((scale) => followed >= scale * 0.9 && followed <= scale * 1.25);
  // Neighbours that are far apart are cells of a table, or the page has other units.
  const width = fitting ?? rules.find((scale) => followed > scale * 2);
  return width === undefined ? { width: followed, size: own * followed } : { width, size };
}

function isLikely(seen: number, size: number): boolean {
  return seen > size * 0.45 && seen < size * 2.6;
}

/** pdf2json adds 3 to every font size, and 1 more to a large bold one. */
function sizeOf(text: Text | undefined): number {
  const [, size = 0, bold = 0] = text?.R[0]?.TS ?? [];
  const added = bold === 1 && size > 13 ? 4 : 3;
  return size > added ? size - added : Math.max(size, 1);
}
