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

export class Retention {
  readonly #deps: RetentionDeps;
  readonly #tasks = new TaskTracker();

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { system, logger } = this.#deps;
    const onFault = (err: unknown): void =>
      logger.error({ err }, 'retention: failed to erase runs; trying again in a minute');
    this.#tasks.repeat(() => this.#look(), { system, everyMs: LOOK_MS, firstMs: FIRST_LOOK_MS, onFault });
  }

  /** Ends after the batch under way. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  async #look(): Promise<void> {
    const { members, logger } = this.#deps;
    if (!members.isInTurn('retention')) return;
    const erased = await this.#eraseExpired();
    if (erased > 0) logger.info({ runs: erased }, 'retention: erased runs');
  }

  /** Erases until none is left. Returns how many. */
  async #eraseExpired(): Promise<number> {
    const { system, history, days } = this.#deps;
    const { signal } = this.#tasks;
    const refused = new Set<string>();
    for (let erased = 0; ;) {
      const found = await history.expired(days, system.now(), FOUND_RUNS + refused.size);
      const due = found.filter((runId) => !refused.has(runId));
      if (due.length === 0) return erased;
      for (let from = 0; from < due.length; from += BATCH_RUNS) {
        if (signal.aborted) return erased;
        const startedMs = system.monotonicMs();
        const batch = due.slice(from, from + BATCH_RUNS);
        const left = await this.#refusedOf(batch);
        for (const runId of left) refused.add(runId);
        erased += batch.length - left.length;
        const tookMs = system.monotonicMs() - startedMs;
        // Others use the log for at least as long.
        await wait(system, Math.max(BATCH_MS - tookMs, tookMs), signal);
      }
    }
  }

  /** Erases a batch, or each run alone if one cannot be erased. Returns those that cannot. */
  async #refusedOf(batch: readonly string[]): Promise<readonly string[]> {
    const refused: string[] = [];
    if (await this.#isErased(batch)) return refused;
    for (const runId of batch) if (!(await this.#isErased([runId]))) refused.push(runId);
    return refused;
  }

  /** Erases runs, or none if one of them cannot be erased. */
  async #isErased(runIds: readonly string[]): Promise<boolean> {
    try {
      await this.#deps.erasures.eraseRuns(runIds, { actor: 'retention', reason: null });
      return true;
    } catch (error) {
      if (error instanceof RunCorrupt || error instanceof RunUnfinished || error instanceof RunUnknown) return false;
      throw error;
    }
  }
}
