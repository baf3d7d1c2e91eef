/** Serializers of documents. */
import type { CitedPage } from '../../audit/sources.js';
import type { DocumentRecord } from '../../documents/events.js';
import type { DocumentCheck } from '../../documents/verify.js';
import type { Document, DocumentVerification, DraftSource } from '../../generated/schemas.js';
import type { ListedDocument } from '../../projections/documents.js';

/** A document in the list; a corrupt one has an error beside its recorded fields. */
export function listedDocument({ isCorrupt, ...record }: ListedDocument): Document {
  return { ...documentRecord(record), ...(isCorrupt && { error: 'The record of this document is damaged' }) };
}

/** A document as it is shown. */
export function documentRecord({ id, filename, pages, chunks, ingestedAt }: DocumentRecord): Document {
  return { id, filename, pages, chunks, ingested_at: ingestedAt };
}

/** The result of verifying a document's record. */
export function documentVerification(documentId: string, check: DocumentCheck): DocumentVerification {
  const { events, headHash, firstDifference } = check;
  const valid = firstDifference === null;
  return { document_id: documentId, valid, events, head_hash: headHash, first_difference: firstDifference };
}

/** A page that a draft cites. @param filename name of its document, or null */
export function draftSource({ chunks, citations, ...page }: CitedPage, filename: string | null): DraftSource {
  return { ...page, filename, chunks: [...chunks], citations: [...citations] };
}
