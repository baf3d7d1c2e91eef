/** The documents as a list. */
import type { DocumentRecord } from '../documents/events.js';
import type { History } from './run-history.js';
import type { ReadDeps } from './read-up-to-date.js';
import { readUpToDate } from './read-up-to-date.js';
import type { Page } from './run-summary.js';

export interface DocumentListDeps extends ReadDeps {
  readonly history: Pick<History, 'documents'>;
  readonly corruptDocuments: { has(documentId: string): boolean };
}

/** A document as the list shows it. */
export interface ListedDocument extends DocumentRecord {
  /** Whether its record is corrupt: it is excluded from search and not shown by id. */
  readonly isCorrupt: boolean;
}

/** Returns a page of documents, newest first, ties by id ascending, with everything recorded before the call. */
export type DocumentList = (page: Page) => Promise<readonly ListedDocument[]>;

export function documentList(deps: DocumentListDeps): DocumentList {
  const { history, corruptDocuments } = deps;
  return async (page) => {
    const documents = await readUpToDate(deps, () => history.documents(page));
    return documents.map((each) => ({ ...each, isCorrupt: corruptDocuments.has(each.id) }));
  };
}
