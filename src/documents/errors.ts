/** Errors of documents. HTTP and CLI map them by their `code`, as all errors. */
import { CouncilError } from '../errors.js';

/** There is no document with this id, it was deleted, or it is not ingested yet. */
export class DocumentUnknown extends CouncilError<{ documentId: string }> {
  readonly code = 'document.unknown';
  constructor(data: { documentId: string }) {
    super(`Cannot find document "${data.documentId}"`, data);
  }
}

/** An event of a document's stream is not one this service writes, or does not follow from the previous one. */
export class DocumentCorrupt extends CouncilError<{ documentId: string; seq: number; reason: string }> {
  readonly code = 'document.corrupt';
  constructor(data: { documentId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of document "${data.documentId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** Too many conflicts with other writers. What is recorded stays. */
export class DocumentContended extends CouncilError<{ documentId: string }> {
  readonly code = 'document.contended';
  constructor(data: { documentId: string }, options?: ErrorOptions) {
    super(`Cannot change document "${data.documentId}": others keep changing it`, data, options);
  }
}
