/** Questions to the stored views that count everything recorded before they were asked. */
import { ServiceStopping } from '../errors.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import { inTime } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { EventLog } from '../eventlog/port.js';
import { ViewsBehind, ViewsLost } from './errors.js';
import type { Projector } from './projector.js';

/** Longest wait for the views to be folded, in milliseconds. */
const MAX_WAIT_MS = 5_000;

export interface ReadUntilDeps {
  readonly log: Pick<EventLog, 'head'>;
  readonly projector: Pick<Projector, 'waitFor' | 'rebuilds'>;
}

export interface ReadDeps extends ReadUntilDeps {
  readonly system: Pick<System, 'after'>;
}

/**
 * Asks once everything is folded, and asks again if the views were lost meanwhile.
 *
 * @throws {ViewsBehind} if that takes longer than 5 s
 */
export async function readUpToDate<T>(deps: ReadDeps, ask: () => Promise<T>): Promise<T> {
  const late = (): Error => new ViewsBehind();
  return await inTime((signal) => readUpToDateUntil(deps, ask, signal), {
    ...{ system: deps.system, maxMs: MAX_WAIT_MS, late },
  });
}

/**
 * The same without a time limit.
 *
 * @throws {ServiceStopping} if the signal aborts or the projector stops
 */
export async function readUpToDateUntil<T>(
  { log, projector }: ReadUntilDeps,
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  while (!signal.aborted) {
    const { rebuilds } = projector;
    await projector.waitFor(await log.head(), signal);
    const answer = await unlessLost(ask);
    // After a loss an answer may come from the new views, which are still empty.
    if (answer !== null && projector.rebuilds === rebuilds) return answer.value;
  }
  throw new ServiceStopping();
}

/** As `readUpToDateUntil`, and waits while the log is away. @throws {ServiceStopping} */
export async function readUpToDateWithRetry<T>(
  { system, ...deps }: ReadDeps,
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  return await retryWhileUnavailable(() => readUpToDateUntil(deps, ask, signal), { system, signal });
}

/**
 * Asks about the result of an earlier query: at once, or, if the views were lost since, when they are folded again.
 *
 * @param rebuilds how often the views had been lost at the earlier query
 */
export async function whileFolded<T>(deps: ReadDeps, rebuilds: number, ask: () => Promise<T>): Promise<T> {
  const answer = deps.projector.rebuilds === rebuilds ? await unlessLost(ask) : null;
  return answer !== null && deps.projector.rebuilds === rebuilds ? answer.value : await readUpToDate(deps, ask);
}

/** An answer, or null if the views are lost. */
async function unlessLost<T>(ask: () => Promise<T>): Promise<{ readonly value: T } | null> {
  try {
    return { value: await ask() };
  } catch (error) {
    if (error instanceof ViewsLost) return null;
    throw error;
  }
}
