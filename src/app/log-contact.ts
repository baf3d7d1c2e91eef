/** Outages of the log: repeats the first calls until the log answers, and logs each outage once. */
import { LogUnavailable, SubscriptionDropped } from '../eventlog/errors.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import type { EngineDeps } from './context.js';

export interface LogContact {
  /** Repeats a call until the log answers. @throws every error of the call but LogUnavailable */
  ask<T>(call: () => Promise<T>): Promise<T>;
}

/** Log lines by the state of the log. */
const LINES = {
  away: 'the event log cannot be reached: waiting for it',
  denied: 'the event log refuses this service: check the user and password in EVENTSTORE_URL; trying again',
};

/** Logs each change of the log's state once, however often a call fails. */
export function logContact({
  system,
  logger,
  onLogAway = () => undefined,
}: Pick<EngineDeps, 'system' | 'logger' | 'onLogAway'>): LogContact {
  const { signal } = new AbortController();
  let state: keyof typeof LINES | 'reached' = 'reached';
  const reached = (): void => {
    if (state === 'reached') return;
    state = 'reached';
    onLogAway(false);
    logger.info({}, 'the event log is reached');
  };
  const lost = (cause: Error): void => {
    const next = isDenial(cause) ? 'denied' : 'away';
    if (state === next) return;
    state = next;
    onLogAway(true);
    logger.error({ reason: cause.message }, LINES[state]);
  };
  const noted = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      const result = await call();
      reached();
      return result;
    } catch (error) {
      if (error instanceof LogUnavailable) lost(deepestOf(error));
      throw error;
    }
  };
  return { ask: (call) => retryWhileUnavailable(() => noted(call), { system, signal }) };
}

/** Logs faults of the read models. An outage of the log ends by itself, so its line has a reason and no stack. */
export function readingFault(logger: EngineDeps['logger']): (error: unknown) => void {
  return (error) => {
    const isOutage = error instanceof SubscriptionDropped || error instanceof LogUnavailable;
    if (isOutage)
      logger.error({ reason: deepestOf(error).message }, 'read models: lost the event log, subscribing again');
    else logger.error({ err: error }, 'read models: fault');
  };
}

/** The deepest cause: the errors above it only say that the log cannot be reached. */
function deepestOf(error: Error): Error {
  return error.cause instanceof Error ? deepestOf(error.cause) : error;
}

/** The gRPC status codes PERMISSION_DENIED and UNAUTHENTICATED. */
const DENIALS: readonly unknown[] = [7, 16];

function isDenial(error: Error): boolean {
  return 'code' in error && DENIALS.includes(error.code);
}
