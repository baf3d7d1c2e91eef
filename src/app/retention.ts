/** Erases runs in the background once their retention has passed: a blueprint's `retentionDays`, else `RETENTION_DAYS`. */
import type { History } from '../projections/run-history.js';
import { TaskTracker } from '../system/async/task-tracker.js';
import { wait } from '../system/async/deadline.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import type { Erasures } from './erasures.js';

/** Most runs that are erased together, and the shortest time between two such batches, in milliseconds: 100 runs a second. */
const BATCH_RUNS = 10;
const BATCH_MS = 100;
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
    void this.#tasks.track(this.#work());
  }

  /** Ends after the batch under way. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  async #work(): Promise<void> {
    const { system, members, logger } = this.#deps;
    const { signal } = this.#tasks;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = LOOK_MS) {
      await wait(system, pauseMs, signal);
      if (signal.aborted) return;
      if (!members.isInTurn('retention')) continue;
      try {
        const erased = await this.#eraseExpired();
        if (erased > 0) logger.info({ runs: erased }, 'retention: erased runs');
      } catch (err) {
        if (!this.#tasks.isEnding) logger.error({ err }, 'retention: failed to erase runs; trying again in a minute');
      }
    }
  }

  /** Erases until none is left. Returns how many. */
  async #eraseExpired(): Promise<number> {
    const { system, history, days } = this.#deps;
    const { signal } = this.#tasks;
    const refused = new Set<string>();
    let erased = 0;
    while (!signal.aborted) {
      const startedMs = system.monotonicMs();
      // A few runs may be refused, such as corrupt ones, and stay in the list.
      const found = await history.expired(days, system.now(), BATCH_RUNS + refused.size);
      const due = found.filter((runId) => !refused.has(runId)).slice(0, BATCH_RUNS);
      if (due.length === 0) return erased;
      const left = await this.#refusedOf(due);
      for (const runId of left) refused.add(runId);
      erased += due.length - left.length;
      await wait(system, Math.max(0, BATCH_MS - (system.monotonicMs() - startedMs)), signal);
    }
    return erased;
  }

  /** Erases a batch, or if that fails each run alone. Returns those that cannot be erased. */
  async #refusedOf(due: readonly string[]): Promise<readonly string[]> {
    const { erasures } = this.#deps;
    const cause = { actor: 'retention', reason: null };
    try {
      await erasures.eraseRuns(due, cause);
      return [];
    } catch (error) {
      if (this.#tasks.isEnding || due.length === 1) throw error;
    }
    const refused: string[] = [];
    for (const runId of due) await erasures.eraseRuns([runId], cause).catch(() => refused.push(runId));
    if (refused.length === due.length) throw new Error(`none of ${due.length} runs can be erased`);
    return refused;
  }
}
