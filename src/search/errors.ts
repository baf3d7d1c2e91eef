/** Errors of the index of chunks. The indexer and the search handle both; clients never see them. */
import { CouncilError } from '../errors.js';

/** The index failed. Its file is deleted, and all documents are indexed again. */
export class IndexLost extends CouncilError {
  readonly code = 'search.lost';
  constructor(options?: ErrorOptions) {
    super('The search index failed and is being rebuilt from the log', {}, options);
  }
}

/** The disk of the index is full. The write had no effect, and earlier chunks can be searched. */
export class IndexFull extends CouncilError {
  readonly code = 'search.full';
  constructor(options?: ErrorOptions) {
    super('The search index cannot be written: its disk is full', {}, options);
  }
}
