/**
 * The worker thread of the extraction child: parses a PDF with the requested parser and posts the text. The child's
 * main thread bounds its memory and time.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { ChildMessage, ChildOptions } from './child-protocol.js';
import { textOfPages } from './layout/page-text.js';
import type { PagesOfRuns } from './layout/text-run.js';

/** `workerData` of the thread. The bytes have a buffer of their own. */
export interface ParserTask {
  readonly options: ChildOptions;
  readonly bytes: Uint8Array;
}

const port = parentPort;
if (port === null) throw new Error('The parser runs as a worker thread only');
const send = (message: ChildMessage): void => port.postMessage(message);
const { options, bytes } = workerData as ParserTask;

try {
  await parse();
} catch (error) {
  send({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
}

async function parse(): Promise<void> {
  if (options.parser === 'pdf2json') {
    const { pdf2jsonRuns } = await import('./pdf2json.js');
    return sendText(await pdf2jsonRuns(bytes));
  }
  const { pdfjsRuns } = await import('./pdfjs.js');
  const found = await pdfjsRuns(bytes, options);
  if (found.kind === 'pages') sendText(found.pages);
  else send(found);
}

function sendText(pages: PagesOfRuns): void {
  if (pages.length > options.maxPages) return send({ kind: 'too-many-pages', found: pages.length });
  const texts = textOfPages(pages);
  if (texts.reduce((sum, { length }) => sum + length, 0) > options.maxTextUnits) return send({ kind: 'too-much-text' });
  for (const text of texts) send({ kind: 'page', text });
  send({ kind: 'done' });
}
