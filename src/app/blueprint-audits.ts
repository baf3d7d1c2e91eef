/** Compares the stored views of blueprints with the log at the start, and replaces those that differ. */
import type { RecordCheck } from '../audit/record-check.js';
import { recordCheck } from '../audit/record-check.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { currentBlueprint } from '../blueprint/stream.js';
import { readUpToDateWithRetry } from '../projections/read-up-to-date.js';
import { TaskTracker } from '../system/async/tasks.js';
import { listedIds } from './listed-ids.js';
import type { RunAuditsDeps } from './run-audits.js';

type BlueprintAuditsDeps = Pick<RunAuditsDeps, 'log' | 'history' | 'projector' | 'system' | 'logger'>;

export class BlueprintAudits {
  readonly #deps: BlueprintAuditsDeps;
  readonly #tasks = new TaskTracker();
  readonly #check: RecordCheck;

  constructor(deps: BlueprintAuditsDeps) {
    this.#deps = deps;
    this.#check = recordCheck({
      verify: (id) => this.#verify(id),
      system: deps.system,
      onFault: (err) => deps.logger.error({ err }, 'blueprints: the check of their views stopped early'),
    });
  }

  /** Checks all blueprints. Resolves after at most 100 ms; the check then continues in the background. */
  check(): Promise<void> {
    return this.#check.start(listedIds((page) => this.#ask(() => this.#deps.history.blueprintIds(page))));
  }

  /** Ends the check. */
  async stop(): Promise<void> {
    await Promise.all([this.#check.stop(), this.#tasks.end()]);
  }

  async #verify(id: string): Promise<void> {
    try {
      await this.#replaceIfDifferent(id);
    } catch (error) {
      // Requests for it are answered with an error, and its row keeps its last valid record.
      if (!(error instanceof BlueprintCorrupt)) throw error;
    }
  }

  async #replaceIfDifferent(id: string): Promise<void> {
    const { log, history, system, logger } = this.#deps;
    const stored = await this.#stored(id);
    const record = await currentBlueprint(id, { log, sha256: system.sha256 });
    if (stored === null || stored === JSON.stringify(record)) return;
    // A blueprint that has changed meanwhile has a newer view.
    if ((await this.#stored(id)) !== stored) return;
    logger.error({ id }, 'blueprint: its stored view differed from its events; replacing the view');
    await history.replaceBlueprint(stored, { id, record });
  }

  async #stored(id: string): Promise<string | null> {
    const [stored = null] = await this.#ask(() => this.#deps.history.blueprintRecords([id]));
    return stored;
  }

  #ask<T>(ask: () => Promise<T>): Promise<T> {
    return readUpToDateWithRetry(this.#deps, ask, this.#tasks.signal);
  }
}
