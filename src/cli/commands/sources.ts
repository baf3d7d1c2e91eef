/** `council sources`: shows the pages that the draft of a run cites. */
import { missingOf, quotationsText } from '../../draft/verdicts.js';
import type { DraftSource, SourceList } from '../../generated/schemas.js';
import { inOneLine } from '../terminal/printer.js';
import { tableText } from '../terminal/table.js';
import { RUN_AT_SERVICE, SERVICE_OPTIONS, runRead } from './service-read.js';

const USAGE = `Usage: council sources RUN --url URL [--json]

Shows the pages that the final draft of a run cites, or its current draft if it has no final one: the document, the page, and
the chunks that the tools of the run have found there, or the title of a page of the web. Names the quotations that were not
found there.

${RUN_AT_SERVICE}`;

export const sources = runRead({
  usage: USAGE,
  options: SERVICE_OPTIONS,
  read: (run, { signal }) => run.sources({ signal }),
  textOf,
});

function textOf(found: SourceList): string {
  if (found.length === 0) return 'The draft cites no source.\n';
  const rows = found.flatMap((source) => [
    [source.mark, inOneLine(placeOf(source))],
    ...missingOf(source, found).map((quoted) => ['', inOneLine(`not found in it: “${quoted}”`)]),
  ]);
  const quotations = quotationsText(found);
  return `${tableText(rows)}${quotations === null ? '' : `\n${quotations}\n`}`;
}

function placeOf({ document, filename, page, chunks, title }: DraftSource): string {
  if (page === null) return title ?? '';
  if (document === null) return `no tool of the run has found page ${page}`;
  const name = filename ?? `document ${document}, which is deleted,`;
  return `${name} page ${page}, ${chunks.length === 1 ? 'chunk' : 'chunks'} ${chunks.join(', ')}`;
}
