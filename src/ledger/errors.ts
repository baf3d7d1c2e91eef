/** The errors of the ledger that callers catch. */
import { CouncilError } from '../errors.js';

/** An event of the ledger or of its checkpoints cannot be read, or is not the one that the tree needs. */
export class LedgerCorrupt extends CouncilError<{ readonly stream: string; readonly seq: number }> {
  readonly code = 'ledger.corrupt';
  constructor(
    { stream, seq, reason }: { readonly stream: string; readonly seq: number; readonly reason: string },
    options?: ErrorOptions,
  ) {
    super(`Cannot read event ${seq} of "${stream}": ${reason}`, { stream, seq }, options);
  }
}
