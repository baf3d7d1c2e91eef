/** Keeps a subscription to the log: subscribes again, after a wait, whenever it drops. */
import type { System } from '../system/system.js';
import { wait } from '../system/async/deadline.js';

/** Wait before subscribing again after a drop, in milliseconds. */
const RESUBSCRIBE_MS = 250;

export interface SubscribedOptions {
  readonly system: Pick<System, 'after'>;
  /** Ends the subscription. */
  readonly signal: AbortSignal;
  /** Called with each error. Throws those after which the subscription must end. */
  readonly onError: (error: unknown) => void;
  /** Called with the first error of an outage, but not with errors of later attempts. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Reads one subscription after the other until the signal aborts.
 *
 * @param read reads a subscription from the end of the previous one, and calls `arrived` for each item
 * @throws what `onError` throws
 */
export async function keepSubscribed(
  read: (arrived: () => void) => Promise<void>,
  { system, signal, onError, onFault }: SubscribedOptions,
): Promise<void> {
  let isFailing = false;
  while (!signal.aborted) {
    try {
      await read(() => (isFailing = false));
    } catch (error) {
      onError(error);
      if (!isFailing) onFault(error);
      isFailing = true;
      await wait(system, RESUBSCRIBE_MS, signal);
    }
  }
}
