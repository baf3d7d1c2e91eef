/** Retries after transient failures, with exponential backoff and jitter, so that clients do not retry at the same time. */
import type { CouncilError } from './errors.js';
import {
  ServerError,
  TooManyRequestsError,
  UnavailableError,
  UnexpectedAnswerError,
  UnreachableError,
} from './errors.js';
import type { ClientSystem } from './system.js';

/** Longest first wait, in milliseconds. Each further wait may be twice as long. */
const FIRST_WAIT_MS = 500;
/** Longest wait without `Retry-After`, in milliseconds. */
const MAX_WAIT_MS = 10_000;
/** Longest timer, in milliseconds. A longer one ends at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/**
 * Number of consecutive unexpected answers to retry. The cause is usually permanent (a corrupt record, the wrong server),
 * but in a browser a connection that is lost within the headers looks the same.
 */
const MAX_ACCIDENTS = 3;
/** Transient statuses without a class of their own: 408 Request Timeout, 425 Too Early. */
const TRANSIENT: readonly (number | null)[] = [408, 425];

export interface RetryOptions {
  /** Time limit of the retries of a call, in milliseconds. Default: 30,000; 0 means no retries. */
  readonly callMs?: number | undefined;
  /** Longest outage that a stream survives, in milliseconds. Default: no limit. */
  readonly streamMs?: number | undefined;
  /** Called before every wait. An error that it throws ends the retries. */
  readonly onWait?: ((wait: RetryWait) => void) | undefined;
}

export interface RetryWait {
  /** The failure of the last attempt. */
  readonly error: CouncilError;
  /** Failures since the last success. */
  readonly failures: number;
  readonly waitMs: number;
}

export interface OutageOptions {
  readonly system: ClientSystem;
  /** Longest outage, in milliseconds. */
  readonly maxMs: number;
  readonly onWait: RetryOptions['onWait'];
  /** Ends waits. */
  readonly signal: AbortSignal | undefined;
}

/** The successive failures of one call or stream. */
export interface Outage {
  /** Waits before the next attempt, or until the signal aborts. @throws the error, if there is no next attempt */
  sitOut(error: CouncilError): Promise<void>;
  /** The service has answered: resets the time of the outage. */
  answered(): void;
  /** The service has sent data: resets the backoff too. */
  ended(): void;
}

export function openOutage({ system, maxMs, onWait, signal }: OutageOptions): Outage {
  let [failures, accidents] = [0, 0];
  let sinceMs: number | null = null;
  return {
    async sitOut(error) {
      failures += 1;
      accidents = isAccident(error) ? accidents + 1 : 0;
      const nowMs = system.monotonicMs();
      sinceMs ??= nowMs;
      const waitMs = waitAfter(error, failures, system);
      if (!isTransient(error) || accidents > MAX_ACCIDENTS || nowMs - sinceMs + waitMs > maxMs) throw error;
      onWait?.({ error, failures, waitMs });
      await wait(system, waitMs, signal);
    },
    answered() {
      sinceMs = null;
    },
    ended() {
      sinceMs = null;
      [failures, accidents] = [0, 0];
    },
  };
}

function isTransient(error: CouncilError): boolean {
  const isAway = error instanceof UnreachableError || error instanceof UnavailableError;
  return isAway || error instanceof TooManyRequestsError || isAccident(error) || TRANSIENT.includes(error.status);
}

function isAccident(error: CouncilError): boolean {
  return error instanceof ServerError || error instanceof UnexpectedAnswerError;
}

function waitAfter({ retryAfter }: CouncilError, failures: number, { random }: ClientSystem): number {
  if (retryAfter !== null) return Math.min(retryAfter * 1_000 + random() * FIRST_WAIT_MS, MAX_TIMER_MS);
  return random() * Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), MAX_WAIT_MS);
}

/** Resolves after a time, or when the signal aborts. */
function wait(system: ClientSystem, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = system.after(delayMs, end);
    if (signal?.aborted === true) end();
    else signal?.addEventListener('abort', end);
  });
}
