/** What failures of a service mean for a command. Does not load the client, for commands that call no service. */
import {
  CouncilError as ServiceError,
  UnauthorizedError,
  UnavailableError,
  UnreachableError,
} from '../client/errors.js';
import { CouncilError } from '../errors.js';

/** How long an unreachable service is waited for, in milliseconds. */
export const AWAY_MS = 30_000;

/** The service has stayed away for too long. */
export class ServiceLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.service-lost';
  constructor({ runId }: { readonly runId: string }) {
    const seconds = AWAY_MS / 1_000;
    super(`Cannot follow run "${runId}", it may go on: the service has been away for ${seconds} s`, { runId });
  }
}

/** Whether an error says that the service is unreachable, or about to stop. */
export function isAway(error: unknown): error is ServiceError {
  return error instanceof UnreachableError || error instanceof UnavailableError;
}

/** Whether the service may have acted: its answer was lost, or has the code for an unknown outcome. */
export function isOutcomeUnknown(error: unknown): error is ServiceError {
  if (error instanceof UnreachableError) return !isUnsent(error);
  return error instanceof ServiceError && error.code === 'outcome_unknown';
}

/** Errors of connections that were never made: nothing was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];

/** Whether a connection could not be made, so that nothing was sent. */
export function isUnsent({ cause: failure }: ServiceError): boolean {
  const cause = failure instanceof Error ? failure.cause : null;
  return cause instanceof Error && 'code' in cause && UNSENT.includes(String(cause.code));
}

/** A hint for a user whose key is missing or refused; '' for any other error. */
export function keyHint(error: unknown): string {
  return error instanceof UnauthorizedError ? ' (the council commands take a key from COUNCIL_KEY)' : '';
}
