/** A subscription to the log that is made again, after a wait, whenever it drops. */
import type { System } from '../system/system.js';
import { wait } from '../system/async/deadline.js';

/** Wait before subscribing again after a drop, in milliseconds. */
const RESUBSCRIBE_MS = 250;

export interface SubscribedOptions {
  readonly system: Pick<System, 'after'>;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Called with each error; throws those after which there is no subscribing again. */
  readonly onError: (error: unknown) => void;
  /** Called with the first error of an outage, however often subscribing is retried. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Reads subscriptions, one after the other, until the signal.
 *
 * @param read reads one from where the last ended, until it ends, and calls `arrived` whenever something comes
 * @throws what `onError` throws
 */
export async function keepSubscribed(
  read: (arrived: () => void) => Promise<void>,
  { system, signal, onError, onFault }: SubscribedOptions,
): Promise<void> {
  let isAway = false;
  while (!signal.aborted) {
    try {
      await read(() => (isAway = false));
    } catch (error) {
      onError(error);
      if (!isAway) onFault(error);
      isAway = true;
      await wait(system, RESUBSCRIBE_MS, signal);
    }
  }
}
