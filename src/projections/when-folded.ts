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

export interface UntilFoldedDeps {
  readonly log: Pick<EventLog, 'head'>;
  readonly projector: Pick<Projector, 'reached' | 'refolds'>;
}

export interface WhenFoldedDeps extends UntilFoldedDeps {
  readonly system: Pick<System, 'after'>;
}

/**
 * Asks once everything is folded, and asks again if the views were lost meanwhile.
 *
 * @throws {ViewsBehind} if that takes longer than 5 s
 */
export async function whenFolded<T>(deps: WhenFoldedDeps, ask: () => Promise<T>): Promise<T> {
  const late = (): Error => new ViewsBehind();
  return await inTime((signal) => untilFolded(deps, ask, signal), {
    ...{ system: deps.system, maxMs: MAX_WAIT_MS, late },
  });
}

/**
 * The same without a time limit.
 *
 * @throws {ServiceStopping} if the signal aborts or the projector stops
 */
export async function untilFolded<T>(
  { log, projector }: UntilFoldedDeps,
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  while (!signal.aborted) {
    const { refolds } = projector;
    await projector.reached(await log.head(), signal);
    const answer = await unlessLost(ask);
    // After a loss an answer may come from the new views, which are still empty.
    if (answer !== null && projector.refolds === refolds) return answer.value;
  }
  throw new ServiceStopping();
}

/** As `untilFolded`, and waits while the log is away. @throws {ServiceStopping} */
export async function untilAnswered<T>(
  { system, ...deps }: WhenFoldedDeps,
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  return await retryWhileUnavailable(() => untilFolded(deps, ask, signal), { system, signal });
}

/**
 * Asks about the result of an earlier query: at once, or, if the views were lost since, when they are folded again.
 *
 * @param refolds how often the views had been lost at the earlier query
 */
export async function whileFolded<T>(deps: WhenFoldedDeps, refolds: number, ask: () => Promise<T>): Promise<T> {
  const answer = deps.projector.refolds === refolds ? await unlessLost(ask) : null;
  return answer !== null && deps.projector.refolds === refolds ? answer.value : await whenFolded(deps, ask);
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
