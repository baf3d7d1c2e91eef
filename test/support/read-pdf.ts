import type { Parser } from '../../src/pdf/child-protocol.js';
import { textsOfContents } from '../../src/pdf/annotations.js';
import { EXTRACT_LIMITS } from '../../src/pdf/extract.js';
import { textOfPages } from '../../src/pdf/layout/page-text.js';
import { pdf2jsonRuns } from '../../src/pdf/pdf2json.js';
import { pdfjsRuns } from '../../src/pdf/pdfjs.js';

/** Reads the pages of a PDF with one of the parsers in this process. */
export async function readBy(parser: Parser, bytes: Buffer): Promise<readonly string[]> {
  const data = new Uint8Array(bytes);
  if (parser === 'pdf2json') return textOfPages(await pdf2jsonRuns(data));
  const found = await pdfjsRuns(data, EXTRACT_LIMITS);
  if (found.kind !== 'pages') throw new Error(`pdfjs read no text: ${JSON.stringify(found)}`);
  return textsOfContents(found.pages);
}
