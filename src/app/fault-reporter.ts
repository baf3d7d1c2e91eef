/** Reports the faults of the read models. */
import { LogUnavailable, SubscriptionDropped } from '../eventlog/errors.js';
import { DocumentCorrupt } from '../documents/errors.js';
import type { CorruptDocuments } from '../documents/verify.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import { RunCorrupt } from '../run/errors.js';
import type { Logger } from '../system/logger.js';

/** The corrupt records that are known. */
export interface KnownCorrupt {
  readonly corruptRuns: Pick<CorruptRuns, 'mark'>;
  readonly corruptDocuments: Pick<CorruptDocuments, 'found'>;
}

/**
 * A handler of faults. Adds corrupt records to `known`, if it is given, and logs all other faults. An outage of the log
 * ends by itself, so its log line has a reason and no stack.
 */
export function faultReporter(
  logger: Pick<Logger, 'error'>,
  known: KnownCorrupt | null = null,
): (error: unknown) => void {
  return (error) => {
    if (known !== null && error instanceof RunCorrupt) known.corruptRuns.mark(error);
    else if (known !== null && error instanceof DocumentCorrupt) known.corruptDocuments.found(error);
    else if (error instanceof SubscriptionDropped || error instanceof LogUnavailable) {
      logger.error({ reason: rootCause(error).message }, 'read models: lost the event log, subscribing again');
    } else logger.error({ err: error }, 'read models: fault');
  };
}

/** The deepest cause: the errors above it only say that the log cannot be reached. */
export function rootCause(error: Error): Error {
  return error.cause instanceof Error ? rootCause(error.cause) : error;
}
