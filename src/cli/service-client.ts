/** The client of the service that a command calls. */
import type { ClientSystem, RetryOptions, RunEvent } from '../client/client.js';
import { CouncilClient } from '../client/client.js';
import { AWAY_MS, ServiceLost, isAway, isUnsent } from './service-faults.js';

export interface ServiceOptions {
  /** The API key; null: none. */
  readonly key: string | null;
  readonly system: ClientSystem;
}

/** A client of the service at an address. Its calls are made once, unless `retry` says otherwise. */
export function serviceClient(url: string, { key, system, ...retry }: ServiceOptions & RetryOptions): CouncilClient {
  return new CouncilClient({
    ...{ url, system, retry: { callMs: 0, streamMs: AWAY_MS, ...retry } },
    ...(key !== null && { key }),
  });
}

/** Notifies the user once per outage that the command retries, and why. */
export function notifyOnce(notify: (text: string) => void): NonNullable<RetryOptions['onWait']> {
  return ({ error, failures }) => {
    const { message } = error;
    if (failures === 1)
      notify(isAway(error) ? 'Connection to the service lost, trying again' : `${message}, trying again`);
  };
}

// Follows a run at a service to its end, over connections that may break.

export interface FollowOptions extends ServiceOptions {
  readonly notify: (text: string) => void;
  /** Ends the events, without an error. */
  readonly signal: AbortSignal;
  /** Whether the run is known to exist; otherwise an unreachable service is not retried. */
  readonly isKnown: boolean;
}

/** A run's events, each exactly once. @throws {ServiceLost} or the service's refusal */
export async function* followEvents(url: string, runId: string, options: FollowOptions): AsyncGenerator<RunEvent> {
  const { notify, signal } = options;
  let { isKnown } = options;
  const notifyOutage = notifyOnce(notify);
  const council = serviceClient(url, {
    ...options,
    onWait(wait) {
      if (!isKnown && (wait.error.status !== null || isUnsent(wait.error))) throw wait.error;
      notifyOutage(wait);
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
