/** Outages of the log: the first calls, repeated until the log answers, and what the service logs of them. */
import { LogUnavailable, SubscriptionDropped } from '../eventlog/errors.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import type { EngineDeps } from './context.js';

export interface LogContact {
  /** The result of a call to the log, once the log can be reached. @throws all errors but LogUnavailable */
  ask<T>(call: () => Promise<T>): Promise<T>;
}

/** Logs each change of the log's state once, however often a call fails. */
export function logContact({
  system,
  logger,
  onLogAway = () => undefined,
}: Pick<EngineDeps, 'system' | 'logger' | 'onLogAway'>): LogContact {
  const { signal } = new AbortController();
  let isAway = false;
  const turn = (reason: string | null): void => {
    if (isAway === (reason !== null)) return;
    isAway = reason !== null;
    onLogAway(isAway);
    if (isAway) logger.error({ reason }, 'the event log cannot be reached: waiting for it');
    else logger.info({}, 'the event log is reached');
  };
  const noted = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      const result = await call();
      turn(null);
      return result;
    } catch (error) {
      if (error instanceof LogUnavailable) turn(reasonOf(error));
      throw error;
    }
  };
  return { ask: (call) => retryWhileUnavailable(() => noted(call), { system, signal }) };
}

/** Logs a fault of the read models; an outage of the log, which ends by itself, in one line. */
export function readingFault(logger: EngineDeps['logger']): (error: unknown) => void {
  return (error) => {
    const isOutage = error instanceof SubscriptionDropped || error instanceof LogUnavailable;
    if (!isOutage) logger.error({ err: error }, 'read models: fault');
    else logger.error({ reason: reasonOf(error) }, 'read models: the event log sends nothing, subscribing again');
  };
}

/** The message of the deepest cause: the errors above it only say that the log cannot be reached. */
function reasonOf(error: Error): string {
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
