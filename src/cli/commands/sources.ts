/** `council sources`: shows the pages of documents that the draft of a run cites. */
import type { SourceList } from '../../generated/schemas.js';
import { inOneLine } from '../terminal/printer.js';
import { tableText } from '../terminal/table.js';
import { RUN_AT_SERVICE, SERVICE_OPTIONS, runRead } from './service-read.js';

const USAGE = `Usage: council sources RUN --url URL [--json]

Shows the pages that the final draft of a run cites, or its current draft if it has no final one: the document, the page, and
the chunks that the tools of the run have found there.

${RUN_AT_SERVICE}`;

export const sources = runRead({
  usage: USAGE,
  options: SERVICE_OPTIONS,
  read: (run, { signal }) => run.sources({ signal }),
  textOf,
});

function textOf(found: SourceList): string {
  if (found.length === 0) return 'The draft cites no document.\n';
  return tableText(
    found.map(({ mark, document, filename, page, chunks }) => {
      const name = filename ?? `document ${document ?? ''}, which is deleted,`;
      const place = `${name} page ${page}, ${chunks.length === 1 ? 'chunk' : 'chunks'} ${chunks.join(', ')}`;
      return [mark, inOneLine(document === null ? `no tool of the run has found page ${page}` : place)];
    }),
  );
}
