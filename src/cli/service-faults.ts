/** What failures of a service mean for a command. Loads only the errors of the client, not the client. */
import {
  CouncilError as ServiceError,
  UnauthorizedError,
  UnavailableError,
  UnreachableError,
} from '../client/errors.js';
import { CouncilError } from '../errors.js';

/** How long a command waits for an unreachable service, in milliseconds. */
export const AWAY_MS = 30_000;

/** The service was unreachable for too long. */
export class ServiceLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.service-lost';
  constructor({ runId }: { readonly runId: string }) {
    const seconds = AWAY_MS / 1_000;
    super(`Cannot follow run "${runId}", which may continue: the service was unreachable for ${seconds} s`, { runId });
  }
}

/** Whether the service is unreachable, overloaded or about to stop. */
export function isAway(error: unknown): error is ServiceError {
  return error instanceof UnreachableError || error instanceof UnavailableError;
}

/** Whether the service may have acted: its answer was lost, or has the code for an unknown outcome. */
export function isOutcomeUnknown(error: unknown): error is ServiceError {
  if (error instanceof UnreachableError) return !isUnsent(error);
  return error instanceof ServiceError && error.code === 'outcome_unknown';
}

/** Error codes of a connection that could not be made, so that nothing was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];

/** Whether the connection could not be made, so that nothing was sent. */
function isUnsent({ cause: failure }: ServiceError): boolean {
  const cause = failure instanceof Error ? failure.cause : null;
  return cause instanceof Error && 'code' in cause && UNSENT.includes(String(cause.code));
}

/** Where the commands read a key that is missing or refused, or '' for any other error. */
export function keyHint(error: unknown): string {
  return error instanceof UnauthorizedError ? ' (the council commands read the key from COUNCIL_KEY)' : '';
}
