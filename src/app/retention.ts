/** Erases runs in the background once their retention has passed: a blueprint's `retentionDays`, else `RETENTION_DAYS`. */
import type { History } from '../projections/run-history.js';
import { RunCorrupt, RunUnfinished, RunUnknown } from '../run/errors.js';
import { TaskTracker } from '../system/async/tasks.js';
import { wait } from '../system/async/deadline.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import type { Erasures } from './erasures.js';

/**
 * Most runs that are erased together, and the shortest time between two such batches, in milliseconds: 100 runs a second. A
 * larger batch makes the log wait longer each time, a smaller one more often. Measured for each batch: 16 ms and 0.3 ms a run.
 */
const BATCH_RUNS = 25;
const BATCH_MS = 250;
/** Runs that one query finds. */
const FOUND_RUNS = 1_000;
/** Time between two looks for runs whose retention has passed, in milliseconds. */
const LOOK_MS = 60_000;
/** Wait before the first look, in milliseconds. */
const FIRST_LOOK_MS = 1_000;

export interface RetentionDeps {
  readonly erasures: Pick<Erasures, 'eraseRuns'>;
  readonly history: Pick<History, 'expired'>;
  /** How this instance sees the others. */
  readonly members: { isInTurn(subject: string): boolean };
  /** Of runs whose blueprint has none, or null if these are kept. */
  readonly days: number | null;
  readonly system: Pick<System, 'after' | 'now' | 'monotonicMs'>;
  readonly logger: Logger;
}

/** Erases in the background until it is stopped: it then ends after the batch under way. */
export function startRetention(deps: RetentionDeps): { stop(): Promise<void> } {
  const { members, system, logger } = deps;
  const tasks = new TaskTracker();
  const look = async (): Promise<void> => {
    const runs = members.isInTurn('retention') ? await eraseExpired(deps, tasks.signal) : 0;
    if (runs > 0) logger.info({ runs }, 'retention: erased runs');
  };
  const onFault = (err: unknown): void =>
    logger.error({ err }, 'retention: failed to erase runs; trying again in a minute');
  tasks.repeat(look, { system, everyMs: LOOK_MS, firstMs: FIRST_LOOK_MS, onFault });
  return { stop: () => tasks.end() };
}

/** Erases until none is left. Returns how many. */
async function eraseExpired({ system, history, days, erasures }: RetentionDeps, signal: AbortSignal): Promise<number> {
  const refused = new Set<string>();
  let erased = 0;
  let due: readonly string[] = [];
  while (!signal.aborted) {
    if (due.length === 0) {
      const found = await history.expired(days, system.now(), FOUND_RUNS + refused.size);
      due = found.filter((runId) => !refused.has(runId));
    }
    if (due.length === 0) break;
    const startedMs = system.monotonicMs();
    const batch = due.slice(0, BATCH_RUNS);
    due = due.slice(BATCH_RUNS);
    const left = await refusedOf(batch, erasures);
    for (const runId of left) refused.add(runId);
    erased += batch.length - left.length;
    const tookMs = system.monotonicMs() - startedMs;
    // Others use the log for at least as long.
    await wait(system, Math.max(BATCH_MS - tookMs, tookMs), signal);
  }
  return erased;
}

/** Erases a batch, or each run alone if one cannot be erased. Returns those that cannot. */
async function refusedOf(runIds: readonly string[], erasures: RetentionDeps['erasures']): Promise<readonly string[]> {
  try {
    await erasures.eraseRuns(runIds, { actor: 'retention', reason: null });
    return [];
  } catch (error) {
    if (!(error instanceof RunCorrupt || error instanceof RunUnfinished || error instanceof RunUnknown)) throw error;
    if (runIds.length === 1) return runIds;
  }
  const refused: string[] = [];
  for (const runId of runIds) refused.push(...(await refusedOf([runId], erasures)));
  return refused;
}
