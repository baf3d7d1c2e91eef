/** The runs that councils start: each is a run of its own, and its parent learns of its end from the log. */
import type { RecordedEvent } from '../../eventlog/port.js';
import { retryWhileUnavailable } from '../../eventsourcing/append-with-retry.js';
import type { ParentRun, RunRequestedData } from '../../generated/schemas.js';
import type { TaskTracker } from '../../system/async/task-tracker.js';
import type { System } from '../../system/system.js';
import { childrenUnderWay, endOf, waitsFor } from '../children/children.js';
import { RunErased, RunFinished, RunUnknown } from '../errors.js';
import type { DraftParser } from '../pending-events.js';
import type { RunState } from '../state.js';
import { isFinished } from '../state.js';
import type { LiveRuns, RunRepository } from './repository.js';

interface ChildRunsDeps {
  readonly live: LiveRuns;
  readonly repository: Pick<RunRepository, 'loadOnceAvailable' | 'reportFault'>;
  readonly drafts: Pick<DraftParser, 'load'>;
  readonly system: System;
  readonly tasks: TaskTracker;
  /** As `start` of the runs, also while others may not start. */
  readonly startOnce: (request: RunRequestedData) => Promise<RunRequestedData>;
  /** @throws {RunFinished | RunUnknown} */
  readonly cancel: (runId: string) => Promise<void>;
}

export class ChildRuns {
  readonly #deps: ChildRunsDeps;

  constructor(deps: ChildRunsDeps) {
    this.#deps = deps;
  }

  /** Starts a run of a council, or finds it again: then its parent may have missed its end. */
  start(request: RunRequestedData): Promise<void> {
    return this.#deps.tasks.track(this.#start(request));
  }

  async #start(request: RunRequestedData): Promise<void> {
    const { runId, parentRun } = request;
    const recorded = await this.#retried(() => this.#deps.startOnce(request));
    if (recorded !== request) {
      // An actor here may not know yet that another instance has recorded its end.
      const child = await this.#deps.repository.loadOnceAvailable(runId);
      if (child !== null) await this.#settle(child.snapshot.context.run);
    } else if (parentRun !== undefined && !(await this.isAwaited(runId, parentRun))) await this.#cancel(runId);
  }

  /** Whether a run waits for this one. */
  async isAwaited(runId: string, { runId: parentId }: ParentRun): Promise<boolean> {
    const { live, repository } = this.#deps;
    const actor = live.get(parentId);
    if (actor !== undefined && waitsFor(actor.run, runId)) return true;
    // An actor here may not know yet what another instance has recorded.
    const recorded = await repository.loadOnceAvailable(parentId).catch(ifErased);
    return recorded !== null && waitsFor(recorded.snapshot.context.run, runId);
  }

  /**
   * Receives each event of a run once it is folded. The end of a run goes to its parent; the end of a parent cancels the runs
   * that it waits for. A paused run has no owner that would find out.
   */
  onRunFolded({ type }: Pick<RecordedEvent, 'type'>, run: RunState): void {
    const hasEnded = isFinished(run);
    const work = hasEnded ? childrenUnderWay(run).map(({ child }) => this.#cancel(child.runId)) : [];
    if (run.parentRun !== null && (hasEnded || type === 'RunPaused')) work.push(this.#settle(run));
    for (const each of work) this.#watch(run.runId, each);
  }

  /** Cancels a run of a council that has failed. */
  cancel(runId: string): void {
    this.#watch(runId, this.#cancel(runId));
  }

  #watch(runId: string, work: Promise<void>): void {
    const { tasks, repository } = this.#deps;
    tasks.track(work).catch((error: unknown) => tasks.isEnding || repository.reportFault(runId, error));
  }

  /** Passes the end of a run to its parent. Cancels a run whose parent does not wait for it any more. */
  async #settle(child: RunState): Promise<void> {
    const { parentRun, runId } = child;
    if (parentRun === null) return;
    const end = endOf(child);
    if (end === null) {
      if (!(await this.isAwaited(runId, parentRun))) await this.#cancel(runId);
      return;
    }
    await this.#deps.drafts.load();
    await this.#deps.live.get(parentRun.runId)?.send({ type: 'EndChild', end });
  }

  async #cancel(runId: string): Promise<void> {
    try {
      await this.#retried(() => this.#deps.cancel(runId));
    } catch (error) {
      if (!(error instanceof RunFinished || error instanceof RunUnknown)) throw error;
    }
  }

  #retried<T>(work: () => Promise<T>): Promise<T> {
    const { system, tasks } = this.#deps;
    return retryWhileUnavailable(work, { system, signal: tasks.signal });
  }
}

/** An erased run waits for nothing. */
function ifErased(error: unknown): null {
  if (error instanceof RunErased) return null;
  throw error;
}
