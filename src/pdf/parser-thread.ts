/**
 * The worker thread of the extraction child: parses a PDF with the requested parser and posts the text. The child's
 * main thread bounds its memory and time.
 */
import type { MessagePort } from 'node:worker_threads';
import { elementAt } from '../system/element.js';
import { parentPort, workerData } from 'node:worker_threads';
import type { ChildMessage, ChildOptions } from './child-protocol.js';
import type { Wrapper } from './pdfjs.js';
import { textsOfContents } from './annotations.js';
import { textOfPages } from './layout/page-text.js';

/** `workerData` of the thread. The bytes have a buffer of their own. */
export interface ParserTask {
  readonly options: Pick<ChildOptions, 'parser' | 'maxPages' | 'maxTextUnits'>;
  readonly bytes: Uint8Array;
}

type Send = (message: ChildMessage) => void;

if (parentPort !== null) serve(parentPort, workerData as ParserTask);

/** Posts the text, or why there is none, and closes the port. */
function serve(port: MessagePort, task: ParserTask): void {
  const send: Send = (message) => port.postMessage(message);
  parse(task, send)
    .catch((error: unknown) => send({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) }))
    .finally(() => port.close());
}

async function parse({ options, bytes }: ParserTask, send: Send): Promise<void> {
  if (options.parser === 'pdf2json') {
    const { pdf2jsonRuns } = await import('./pdf2json.js');
    const pages = await pdf2jsonRuns(bytes);
    if (pages.length > options.maxPages) return send({ kind: 'too-many-pages', found: pages.length });
    return sendTexts(textOfPages(pages), options, send);
  }
  const { pdfjsRuns } = await import('./pdfjs.js');
  const found = await pdfjsRuns(bytes, options);
  if (found.kind !== 'pages') return send(found);
  const texts = textsOfContents(found.pages);
  if (found.wrapper !== null && isPlaceholder(texts, found.wrapper)) send({ kind: found.wrapper });
  else sendTexts(texts, options, send);
}

/** Most UTF-16 units of a placeholder. Those of Adobe's programs have about 700 and 120 in English. */
const LONGEST_PLACEHOLDER: Readonly<Record<Wrapper, number>> = { 'xfa-form': 1_200, portfolio: 400 };

/** Whether a document is so short that it probably only says to open the form or portfolio with another program. */
function isPlaceholder(texts: readonly string[], wrapper: Wrapper): boolean {
  return texts.length === 1 && elementAt(texts, 0).length <= LONGEST_PLACEHOLDER[wrapper];
}

function sendTexts(texts: readonly string[], options: ParserTask['options'], send: Send): void {
  if (texts.reduce((sum, { length }) => sum + length, 0) > options.maxTextUnits) return send({ kind: 'too-much-text' });
  for (const text of texts) send({ kind: 'page', text });
  send({ kind: 'done' });
}
