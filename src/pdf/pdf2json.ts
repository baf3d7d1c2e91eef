/** The second parser: pdf2json. It blocks the calling thread, on some files for ever. */
import { Buffer } from 'node:buffer';
import PDFParser, { type Page, type Text } from 'pdf2json';
import { POINTS, scalesOf, styleOf, type Scale } from './pdf2json-scale.js';
import type { PagesOfRuns, TextRun } from './layout/text-run.js';

/**
 * Runs of all pages.
 *
 * @throws {Error} pdf2json fails on the file; the caller must bound the time, because it may never answer
 */
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
    // Of a view into a larger buffer it would read from that buffer's start: an exact copy.
    parser.parseBuffer(Buffer.from(new Uint8Array(bytes).buffer), 0);
  });
}

function runOf({ x, y, w, R }: Text, { width, size }: Scale): readonly TextRun[] {
  const run = R[0];
  if (run === undefined || run.T === '') return [];
  // It pads a lone C or G, whatever the font; elsewhere its spaces are the file's.
  const text = run.T === ' C ' || run.T === ' G ' ? run.T.trim() : run.T;
  const angle = ((Math.round(run.RA ?? 0) % 360) + 360) % 360;
  // Its offsets of a quarter and three quarters place texts in its own viewer.
  return [{ text, x: (x + 0.25) * POINTS, baseline: (y + 0.75) * POINTS, width: w * width, size, angle }];
}
