/** Retries after transient faults, with exponential backoff and jitter, so that clients do not retry in step. */
import type { CouncilError } from './errors.js';
import {
  ServerError,
  TooManyRequestsError,
  UnavailableError,
  UnexpectedAnswerError,
  UnreachableError,
} from './errors.js';
import type { ClientSystem } from './system.js';

/** Longest first wait, in milliseconds; each further one may be twice as long. */
const FIRST_WAIT_MS = 500;
/** Longest wait that the service has not asked for, in milliseconds. */
const MAX_WAIT_MS = 10_000;
/** Longest wait a timer takes, in milliseconds: more would end at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/**
 * How many consecutive unexpected answers to retry. The cause is usually permanent (a corrupt record, the wrong server),
 * but in a browser a connection cut inside the headers looks the same.
 */
const MAX_ACCIDENTS = 3;
/** Transient statuses, beside those with a class of their own: 408 Request Timeout, 425 Too Early. */
const PASSING: readonly (number | null)[] = [408, 425];

/** For how long an unreachable service is retried. */
export interface RetryOptions {
  /** A call, in milliseconds from its first try. Default: 30,000; 0: no retries. */
  readonly callMs?: number | undefined;
  /** A stream, in milliseconds without the service. Default: for ever. */
  readonly streamMs?: number | undefined;
  /** Called before every wait; an error that it throws ends the retries. */
  readonly onWait?: ((wait: RetryWait) => void) | undefined;
}

export interface RetryWait {
  /** Why the last try failed. */
  readonly error: CouncilError;
  /** Failures since the last success. */
  readonly failures: number;
  readonly waitMs: number;
}

export interface OutageOptions {
  readonly system: ClientSystem;
  /** Longest time without the service, in milliseconds. */
  readonly maxMs: number;
  readonly onWait: RetryOptions['onWait'];
  /** Cuts waits short. */
  readonly signal: AbortSignal | undefined;
}

/** The faults of one call or stream, one after the other. */
export interface Outage {
  /** Waits before another try, or until the signal aborts. @throws the error, when no other try is worth it */
  sitOut(error: CouncilError): Promise<void>;
  /** The service answered: resets the outage timer. */
  answered(): void;
  /** It sent data: resets the backoff too. */
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
      if (!isPassing(error) || accidents > MAX_ACCIDENTS || nowMs - sinceMs + waitMs > maxMs) throw error;
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

function isPassing(error: CouncilError): boolean {
  const isAway = error instanceof UnreachableError || error instanceof UnavailableError;
  return isAway || error instanceof TooManyRequestsError || isAccident(error) || PASSING.includes(error.status);
}

function isAccident(error: CouncilError): boolean {
  return error instanceof ServerError || error instanceof UnexpectedAnswerError;
}

function waitAfter({ retryAfter }: CouncilError, failures: number, { random }: ClientSystem): number {
  if (retryAfter !== null) return Math.min(retryAfter * 1_000 + random() * FIRST_WAIT_MS, MAX_TIMER_MS);
  return random() * Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), MAX_WAIT_MS);
}

/** Resolves after a time, or at once when the signal aborts. */
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
