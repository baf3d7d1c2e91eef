/**
 * The thread of the extraction child that does the work: parses a PDF with the parser it was told and posts the text.
 * What the parser does to this thread, memory and time, the child's main thread sees and bounds.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { ChildMessage, ChildOrder } from './child-protocol.js';
import { textOfPages } from './layout/page-text.js';
import type { PagesOfRuns } from './layout/text-run.js';

/** `workerData` of the thread. The bytes have a buffer to themselves. */
export interface ParserTask {
  readonly order: ChildOrder;
  readonly bytes: Uint8Array;
}

const port = parentPort;
if (port === null) throw new Error('The parser runs as a worker thread only');
const say = (message: ChildMessage): void => port.postMessage(message);
const { order, bytes } = workerData as ParserTask;

try {
  await parse();
} catch (error) {
  say({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
}

async function parse(): Promise<void> {
  if (order.parser === 'pdf2json') {
    const { pdf2jsonRuns } = await import('./pdf2json.js');
    return sayText(await pdf2jsonRuns(bytes));
  }
  const { pdfjsRuns } = await import('./pdfjs.js');
  const found = await pdfjsRuns(bytes, order);
  if (found.kind === 'pages') sayText(found.pages);
  else say(found);
}

function sayText(pages: PagesOfRuns): void {
  if (pages.length > order.maxPages) return say({ kind: 'too-many-pages', found: pages.length });
  const texts = textOfPages(pages);
  if (texts.reduce((sum, { length }) => sum + length, 0) > order.maxTextUnits) return say({ kind: 'too-much-text' });
  for (const text of texts) say({ kind: 'page', text });
  say({ kind: 'done' });
}
