/** How the index of chunks fails. The indexer and the search handle both; no request is answered with them. */
import { CouncilError } from '../errors.js';

/** The index failed. Its file is deleted, and all documents are indexed again. */
export class IndexLost extends CouncilError {
  readonly code = 'search.lost';
  constructor(options?: ErrorOptions) {
    super('The search index failed and is being rebuilt from the log', {}, options);
  }
}

/** The disk of the index is full: nothing was written, and what was written before can be searched. */
export class IndexFull extends CouncilError {
  readonly code = 'search.full';
  constructor(options?: ErrorOptions) {
    super('The search index cannot be written: its disk is full', {}, options);
  }
}
