/** Errors of documents. */
import { CouncilError } from '../errors.js';

/** There is no document with this id, or it was deleted or is not ingested yet. */
export class DocumentUnknown extends CouncilError<{ documentId: string }> {
  readonly code = 'document.unknown';
  constructor(data: { documentId: string }) {
    super(`Cannot find document "${data.documentId}"`, data);
  }
}

/** An event of a document is not one that the service writes, or does not follow from the previous event. */
export class DocumentCorrupt extends CouncilError<{ documentId: string; seq: number; reason: string }> {
  readonly code = 'document.corrupt';
  constructor(data: { documentId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of document "${data.documentId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** Too many conflicts with other writers. Recorded events stay. */
export class DocumentContended extends CouncilError<{ documentId: string }> {
  readonly code = 'document.contended';
  constructor(data: { documentId: string }, options?: ErrorOptions) {
    super(`Cannot change document "${data.documentId}": other instances keep changing it`, data, options);
  }
}
