/** What may be wrong with a document. The edges tell these by their `code`, as all errors. */
import { CouncilError } from '../errors.js';

/** No document has this id, or none any more, or it is not ingested yet. */
export class DocumentUnknown extends CouncilError<{ documentId: string }> {
  readonly code = 'document.unknown';
  constructor(data: { documentId: string }) {
    super(`Cannot find document "${data.documentId}"`, data);
  }
}

/** An event of a document's stream is none this service could have written, or does not follow from the one before. */
export class DocumentCorrupt extends CouncilError<{ documentId: string; seq: number; reason: string }> {
  readonly code = 'document.damaged';
  constructor(data: { documentId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of document "${data.documentId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** Others changed it again and again in the meantime. What is recorded of it stays. */
export class DocumentContended extends CouncilError<{ documentId: string }> {
  readonly code = 'document.contended';
  constructor(data: { documentId: string }, options?: ErrorOptions) {
    super(`Cannot change document "${data.documentId}": others keep changing it`, data, options);
  }
}
