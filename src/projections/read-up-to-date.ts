/** Queries of the stored views that include everything recorded before the call. */
import { ServiceStopping } from '../errors.js';
import { retryWhileUnavailable } from '../eventlog/port.js';
import { inTime } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { EventLog } from '../eventlog/port.js';
import { ViewsBehind, ViewsLost } from './errors.js';
import type { Projector } from './projector.js';

/** Longest wait for the views to be folded, in milliseconds. A service whose views are further behind is not ready. */
export const MAX_WAIT_MS = 5_000;

export interface ReadUntilDeps {
  readonly log: Pick<EventLog, 'head'>;
  readonly projector: Pick<Projector, 'waitFor' | 'rebuilds'>;
}

export interface ReadDeps extends ReadUntilDeps {
  readonly system: Pick<System, 'after'>;
}

/**
 * Runs a query when everything is folded, and again if the views were lost meanwhile.
 *
 * @throws {ViewsBehind} if that takes longer than 5 s
 */
export async function readUpToDate<T>(deps: ReadDeps, query: () => Promise<T>): Promise<T> {
  const late = (): Error => new ViewsBehind();
  return await inTime(({ signal }) => readUpToDateUntil(deps, query, signal), {
    system: deps.system,
    maxMs: MAX_WAIT_MS,
    late,
  });
}

/**
 * As `readUpToDate`, without a time limit.
 *
 * @throws {ServiceStopping} if the signal aborts or the projector stops
 */
export async function readUpToDateUntil<T>(
  { log, projector }: ReadUntilDeps,
  query: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  while (!signal.aborted) {
    const { rebuilds } = projector;
    await projector.waitFor(await log.head(), signal);
    const answer = await unlessLost(query);
    // After a loss the answer may come from the new views, which are still empty.
    if (answer !== null && projector.rebuilds === rebuilds) return answer.value;
  }
  throw new ServiceStopping();
}

/** As `readUpToDateUntil`; waits while the log is unavailable. @throws {ServiceStopping} */
export async function readUpToDateWithRetry<T>(
  { system, ...deps }: ReadDeps,
  query: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  return await retryWhileUnavailable(() => readUpToDateUntil(deps, query, signal), { system, signal });
}

/** An answer, or null if the views are lost. */
async function unlessLost<T>(query: () => Promise<T>): Promise<{ readonly value: T } | null> {
  try {
    return { value: await query() };
  } catch (error) {
    if (error instanceof ViewsLost) return null;
    throw error;
  }
}
