/** Retries while a service is away. */
import type { System } from '../../system/system.js';
import { wait } from '../../system/async/deadline.js';
import { ServiceRefused, ServiceUnreachable } from './rest.js';

/** Time between two tries, in milliseconds. */
const RETRY_MS = 500;
/** How long an absent service is waited for, in milliseconds. */
export const RETURN_DEADLINE_MS = 30_000;

export interface RetryPolicy {
  readonly system: Pick<System, 'after' | 'monotonicMs'>;
  /** Called once per outage, with a notice for the user. */
  readonly notify: (text: string) => void;
  /** Ends the retries. */
  readonly signal: AbortSignal;
}

/** Tries what may be done twice until the service is there, or for half a minute. @throws what the last try throws */
export async function retryWhileAway<T>(act: () => Promise<T>, retryPolicy: RetryPolicy): Promise<T> {
  const outage = openOutage(retryPolicy);
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isAway(error) || !(await outage.sitOut())) throw error;
    }
  }
}

export interface Outage {
  /** Waits before another try; false when no more are to be made. */
  sitOut(): Promise<boolean>;
  /** The service was there. */
  end(): void;
}

/** The times that a service is away, one after the other. */
export function openOutage({ system, notify, signal }: RetryPolicy): Outage {
  let sinceMs: number | null = null;
  return {
    async sitOut() {
      const nowMs = system.monotonicMs();
      if (signal.aborted || (sinceMs !== null && nowMs - sinceMs > RETURN_DEADLINE_MS)) return false;
      if (sinceMs === null) notify('Connection to the service lost, trying again');
      sinceMs ??= nowMs;
      await wait(system, RETRY_MS, signal);
      return true;
    },
    end() {
      sinceMs = null;
    },
  };
}

/** Whether an error says that the service is not there, or about to go: no answer, or 503. */
export function isAway(error: unknown): error is ServiceRefused | ServiceUnreachable {
  return error instanceof ServiceUnreachable || (error instanceof ServiceRefused && error.data.status === 503);
}
