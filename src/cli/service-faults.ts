/** What the failures of a service mean at a terminal. Whoever asks none need not load its client for that. */
import {
  CouncilError as ServiceError,
  UnauthorizedError,
  UnavailableError,
  UnreachableError,
} from '../client/errors.js';
import { CouncilError } from '../errors.js';

/** How long an absent service is waited for, in milliseconds. */
export const AWAY_MS = 30_000;

/** The service does not come back. */
export class ServiceLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.service-lost';
  constructor({ runId }: { readonly runId: string }) {
    const seconds = AWAY_MS / 1_000;
    super(`Cannot follow run "${runId}", it may go on: the service has been away for ${seconds} s`, { runId });
  }
}

/** Whether an error says that the service is not there, or about to go. */
export function isAway(error: unknown): error is ServiceError {
  return error instanceof UnreachableError || error instanceof UnavailableError;
}

/** Whether the service may have acted though it did not answer: its answer was lost, or says so (api/problems.ts). */
export function isOutcomeUnknown(error: unknown): error is ServiceError {
  if (error instanceof UnreachableError) return !isUnsent(error);
  return error instanceof ServiceError && /may still take effect/.test(error.message);
}

/** What keeps a connection from being made: nothing was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];

/** Whether a connection could not be made, so that nothing was sent. */
export function isUnsent({ cause: failure }: ServiceError): boolean {
  const cause = failure instanceof Error ? failure.cause : null;
  return cause instanceof Error && 'code' in cause && UNSENT.includes(String(cause.code));
}

/** What to add for a user whose key is missing or no good; '' for any other error. */
export function keyHint(error: unknown): string {
  return error instanceof UnauthorizedError ? ' (the council commands take a key from COUNCIL_KEY)' : '';
}
