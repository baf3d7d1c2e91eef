/** The documents as a list. */
import type { DocumentRecord } from '../library/document-record.js';
import type { EventLog } from '../log/port.js';
import type { History } from './history.js';
import type { Projector } from './projector.js';
import type { Page } from './run-summary.js';

export interface DocumentListParts {
  readonly log: EventLog;
  readonly history: Pick<History, 'documents'>;
  readonly projector: Pick<Projector, 'reached'>;
}

/** Asks for a page of them, newest first, ties by id ascending; everything recorded before the call is in it. */
export type DocumentList = (page: Page) => Promise<readonly DocumentRecord[]>;

export function documentList({ log, history, projector }: DocumentListParts): DocumentList {
  return async (page) => {
    await projector.reached(await log.head());
    return await history.documents(page);
  };
}
