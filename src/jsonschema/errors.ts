import { CouncilError } from '../errors.js';

/** Other schemas took too long before this one. */
export class SchemasBusy extends CouncilError<{ maxWaitMs: number }> {
  readonly code = 'schemas.busy';
  constructor(data: { maxWaitMs: number }) {
    super(`Cannot check the schema: others have taken ${data.maxWaitMs / 1_000} s before it; try again`, data);
  }
}
