/** The worker thread of the extraction child: parses a PDF with one of the parsers and posts the text. */
import { parentPort, workerData } from 'node:worker_threads';
import { elementAt, present } from '../system/element.js';
import type { ChildMessage, ChildOptions } from './child-protocol.js';
import type { Wrapper } from './pdfjs.js';
import { textsOfContents } from './annotations.js';
import { textOfPages } from './layout/page-text.js';

/** The `workerData` of the thread. The bytes have a buffer of their own. */
export interface ParserTask {
  readonly options: Pick<ChildOptions, 'parser' | 'maxPages' | 'maxTextUnits'>;
  readonly bytes: Uint8Array;
}

const port = present(parentPort, 'parent of the thread');
const send = (message: ChildMessage): void => port.postMessage(message);
parse(workerData as ParserTask)
  .catch((error: unknown) => send({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) }))
  .finally(() => port.close());

async function parse({ options, bytes }: ParserTask): Promise<void> {
  if (options.parser === 'pdf2json') {
    const { pdf2jsonRuns } = await import('./pdf2json.js');
    const pages = await pdf2jsonRuns(bytes);
    if (pages.length > options.maxPages) return send({ kind: 'too-many-pages', found: pages.length });
    return sendTexts(textOfPages(pages), options);
  }
  const { pdfjsRuns } = await import('./pdfjs.js');
  const found = await pdfjsRuns(bytes, options);
  if (found.kind !== 'pages') return send(found);
  const texts = textsOfContents(found.pages);
  if (found.wrapper !== null && isPlaceholder(texts, found.wrapper)) send({ kind: found.wrapper });
  else sendTexts(texts, options);
}

/** Longest placeholder, in UTF-16 units. The placeholders of Adobe's programs have about 700 and 120 in English. */
const LONGEST_PLACEHOLDER: Readonly<Record<Wrapper, number>> = { 'xfa-form': 1_200, portfolio: 400 };

/** Whether a document is so short that it probably only asks the reader to open it with another program. */
function isPlaceholder(texts: readonly string[], wrapper: Wrapper): boolean {
  return texts.length === 1 && elementAt(texts, 0).length <= LONGEST_PLACEHOLDER[wrapper];
}

function sendTexts(texts: readonly string[], options: ParserTask['options']): void {
  if (texts.reduce((sum, { length }) => sum + length, 0) > options.maxTextUnits) return send({ kind: 'too-much-text' });
  for (const text of texts) send({ kind: 'page', text });
  send({ kind: 'done' });
}
