/** The client of a running service, as the commands use it. */
import type { ClientSystem, CouncilClientOptions, RetryOptions, RunEvent } from '../client/client.js';
import { CouncilClient } from '../client/client.js';
import { AWAY_MS, ServiceLost, isAway } from './service-faults.js';

export interface ServiceOptions {
  /** The API key, or null if the user has none. */
  readonly key: string | null;
  readonly system: ClientSystem;
}

/** A client of the service at an address. It makes each call once, unless the retry options say otherwise. */
export function serviceClient(
  url: string,
  { key, system, fetch, ...retry }: ServiceOptions & Pick<CouncilClientOptions, 'fetch'> & RetryOptions,
): CouncilClient {
  return new CouncilClient({
    url,
    system,
    fetch,
    retry: { callMs: 0, streamMs: AWAY_MS, ...retry },
    ...(key !== null && { key }),
  });
}

/** Tells the user once per outage that the command tries again, and why. */
export function notifyOnce(notify: (text: string) => void): NonNullable<RetryOptions['onWait']> {
  return ({ error, failures }) => {
    const { message } = error;
    if (failures === 1)
      notify(isAway(error) ? 'Connection to the service lost, trying again' : `${message}, trying again`);
  };
}

export interface FollowOptions extends ServiceOptions {
  readonly notify: (text: string) => void;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
  /**
   * Whether the run is known to exist. If not, a refusal ends the iteration, and so does a failure to reach a service that
   * has never answered.
   */
  readonly isKnown: boolean;
}

/** The events of a run, each exactly once, over connections that may break. @throws {ServiceLost | ServiceError} */
export async function* followEvents(url: string, runId: string, options: FollowOptions): AsyncGenerator<RunEvent> {
  const { notify, signal } = options;
  let { isKnown } = options;
  let hasAnswered = false;
  const notifyOutage = notifyOnce(notify);
  const council = serviceClient(url, {
    ...options,
    async fetch(...request) {
      const answer = await fetch(...request);
      hasAnswered = true;
      return answer;
    },
    onWait(wait) {
      if (!isKnown && (wait.error.status !== null || !hasAnswered)) throw wait.error;
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
