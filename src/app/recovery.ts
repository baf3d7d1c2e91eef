/** Continues the unfinished runs after a start: of all instances, or of this process alone. */
import type { Cluster } from '../cluster/cluster.js';
import { ServiceStopping } from '../errors.js';
import { LogClosed } from '../eventlog/errors.js';
import type { EventLog } from '../eventlog/port.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import type { Projector } from '../projections/projector.js';
import { readUpToDateWithRetry } from '../projections/read-up-to-date.js';
import type { History } from '../projections/run-history.js';
import type { Deadlines } from '../run/runs/deadlines.js';
import type { Runs } from '../run/runs/runs.js';
import type { UnfinishedRun } from '../run/state.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import type { BlueprintAudits } from './blueprint-audits.js';
import type { Documents } from './documents.js';
import type { RunAudits } from './run-audits.js';

export interface RecoveryDeps {
  readonly log: EventLog;
  readonly system: Pick<System, 'after'>;
  readonly logger: Logger;
  readonly history: History;
  readonly projector: Projector;
  readonly documents: Documents;
  readonly corruptRuns: CorruptRuns;
  readonly registry: Runs;
  readonly cluster: Cluster | null;
  readonly deadlines: Deadlines;
  readonly audits: RunAudits;
  readonly councils: BlueprintAudits;
}

export class Recovery {
  readonly #deps: RecoveryDeps;
  readonly #stopping = new AbortController();
  #caughtUp: Promise<void> = Promise.resolve();

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
  }

  /** Starts to fold the log. */
  start(): void {
    this.#caughtUp = this.#fold();
  }

  async #fold(): Promise<void> {
    const { documents, projector } = this.#deps;
    await documents.start();
    await projector.start();
    documents.markHistoryDelivered();
  }

  /**
   * The runs that are neither finished nor paused, oldest first; resolves once the read models have caught up.
   *
   * @throws {ServiceStopping | LogClosed} when the context stops before
   */
  async unfinished(): Promise<readonly UnfinishedRun[]> {
    const { cluster, history } = this.#deps;
    await this.#caughtUp;
    cluster?.listen();
    const unfinished = await readUpToDateWithRetry(this.#deps, () => history.unfinished(), this.#stopping.signal);
    return this.#withoutCorrupt(unfinished);
  }

  /**
   * Looks for corrupt records of runs, documents and blueprints. Resolves after a short time; the check then continues
   * in the background.
   */
  async check(unfinished: readonly UnfinishedRun[]): Promise<void> {
    const { audits, documents, councils } = this.#deps;
    await Promise.all([audits.check(unfinished), documents.check(), councils.check()]);
  }

  /**
   * Takes the runs without an owner. The caller calls it before a new run may start, so that no new run overtakes an
   * old one.
   */
  recover(unfinished: readonly UnfinishedRun[]): void {
    const { cluster, deadlines, registry, logger } = this.#deps;
    const runs = this.#withoutCorrupt(unfinished);
    deadlines.start();
    if (cluster !== null) return cluster.start(runs);
    if (runs.length > 0) logger.info({ runs: runs.length }, 'runs: continuing the unfinished ones');
    registry.recover(runs);
  }

  /** Replaces `recover` in a process that runs only its own runs: only sends heartbeats. */
  beat(): void {
    this.#deps.cluster?.beat();
  }

  /** Ends the wait for the read models. */
  stop(): void {
    this.#stopping.abort();
  }

  #withoutCorrupt(runs: readonly UnfinishedRun[]): readonly UnfinishedRun[] {
    return runs.filter(({ runId }) => !this.#deps.corruptRuns.has(runId));
  }
}

/** Whether recovery ended only because the context stopped. */
export function isEndedByStop(error: unknown): boolean {
  return error instanceof ServiceStopping || error instanceof LogClosed;
}
