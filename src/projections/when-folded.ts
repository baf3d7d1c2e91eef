/** Questions to the stored views that count everything recorded before they were asked. */
import { inTime } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { EventLog } from '../eventlog/port.js';
import { ViewsBehind, ViewsLost } from './errors.js';
import type { Projector } from './projector.js';

/** Longest wait for the views to be folded, in milliseconds. */
const MAX_WAIT_MS = 5_000;

export interface WhenFoldedDeps {
  readonly log: Pick<EventLog, 'head'>;
  readonly projector: Pick<Projector, 'reached' | 'refolds'>;
  readonly system: Pick<System, 'after'>;
}

/**
 * Asks once everything is folded, and once more when the views turn out to be lost.
 *
 * @throws {ViewsBehind} when folding takes too long
 */
export async function whenFolded<T>(deps: WhenFoldedDeps, ask: () => Promise<T>): Promise<T> {
  const { refolds } = deps.projector;
  await folded(deps);
  return await askWhole(deps, refolds, ask);
}

/**
 * Asks about the result of an earlier query: at once, or, if the views were recreated since, when they are folded again.
 *
 * @param refolds how often the views had been recreated at the earlier query
 */
export async function whileFolded<T>(deps: WhenFoldedDeps, refolds: number, ask: () => Promise<T>): Promise<T> {
  const now = deps.projector.refolds;
  if (now !== refolds) await folded(deps);
  return await askWhole(deps, now, ask);
}

/** An answer counts only if the views were not recreated meanwhile: it may come from the new ones, still empty. */
async function askWhole<T>(deps: WhenFoldedDeps, refolds: number, ask: () => Promise<T>): Promise<T> {
  try {
    const answer = await ask();
    if (deps.projector.refolds === refolds) return answer;
  } catch (error) {
    if (!(error instanceof ViewsLost)) throw error;
  }
  await folded(deps);
  return await ask();
}

async function folded({ log, projector, system }: WhenFoldedDeps): Promise<void> {
  const head = await log.head();
  const reaching = (call: Pick<AbortController, 'signal'>): Promise<void> => projector.reached(head, call.signal);
  await inTime(reaching, { system, maxMs: MAX_WAIT_MS, late: () => new ViewsBehind() });
}
