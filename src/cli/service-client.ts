/** The service that a command drives or asks, by its client. */
import type { ClientSystem, RetryOptions, RunEvent } from '../client/client.js';
import { CouncilClient } from '../client/client.js';
import { AWAY_MS, ServiceLost, isAway, isUnsent } from './service-faults.js';

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
