/** The service that a command drives or asks: its client, and what its failures mean at a terminal. */
import type { RetryOptions, RunEvent } from '../client/client.js';
import {
  CouncilClient,
  CouncilError as ServiceError,
  UnauthorizedError,
  UnavailableError,
  UnreachableError,
} from '../client/client.js';
import type { ClientSystem } from '../client/client.js';
import { CouncilError } from '../errors.js';

/** How long an absent service is waited for, in milliseconds. */
export const AWAY_MS = 30_000;

export interface ServiceOptions {
  /** Who asks; null: nobody. */
  readonly key: string | null;
  readonly system: ClientSystem;
}

/** A client of the service at an address. Its calls are made once, unless told otherwise. */
export function serviceClient(url: string, { key, system, ...retry }: ServiceOptions & RetryOptions): CouncilClient {
  return new CouncilClient({
    ...{ url, system, retry: { callMs: 0, streamMs: AWAY_MS, ...retry } },
    ...(key !== null && { key }),
  });
}

/** Tells the user once an outage that the service is waited for, and why. */
export function toldOnce(notify: (text: string) => void): NonNullable<RetryOptions['onWait']> {
  return ({ error, failures }) => {
    const { message } = error;
    if (failures === 1)
      notify(isAway(error) ? 'Connection to the service lost, trying again' : `${message}, trying again`);
  };
}

// A run at a service, followed to its end over connections that may break.

/** The service does not come back. */
export class ServiceLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.service-lost';
  constructor({ runId }: { readonly runId: string }) {
    const seconds = AWAY_MS / 1_000;
    super(`Cannot follow run "${runId}", it may go on: the service has been away for ${seconds} s`, { runId });
  }
}

export interface FollowOptions extends ServiceOptions {
  readonly notify: (text: string) => void;
  /** Ends it, quietly. */
  readonly signal: AbortSignal;
  /** Whether the run is known to be there: else a service that is not is not waited for. */
  readonly isKnown: boolean;
}

/** A run's events, none left out and none twice. @throws {ServiceLost} or what the service refuses */
export async function* followEvents(url: string, runId: string, options: FollowOptions): AsyncGenerator<RunEvent> {
  const { notify, signal } = options;
  let { isKnown } = options;
  const tell = toldOnce(notify);
  const council = serviceClient(url, {
    ...options,
    onWait(wait) {
      if (!isKnown && (wait.error.status !== null || isUnsent(wait.error))) throw wait.error;
      tell(wait);
    },
  });
  try {
    for await (const event of council.run(runId).events({ signal })) {
      isKnown = true;
      yield event;
    }
  } catch (error) {
    throw isKnown && isAway(error) ? new ServiceLost({ runId }) : error;
  }
}

// What went wrong.

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

function isUnsent({ cause: failure }: ServiceError): boolean {
  const cause = failure instanceof Error ? failure.cause : null;
  return cause instanceof Error && 'code' in cause && UNSENT.includes(String(cause.code));
}

/** What to add for a user whose key is missing or no good; '' for any other error. */
export function keyHint(error: unknown): string {
  return error instanceof UnauthorizedError ? ' (the council commands take a key from COUNCIL_KEY)' : '';
}
