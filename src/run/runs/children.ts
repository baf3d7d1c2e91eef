/**
 * The runs that councils start: each is a run of its own, and its parent learns of its end from the log. A run ends only after
 * them, so none is left without its parent.
 */
import { AppendTooLarge } from '../../eventlog/errors.js';
import { retryWhileUnavailable } from '../../eventlog/port.js';
import type { ChildEndedData, RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import type { TaskTracker } from '../../system/async/tasks.js';
import type { System } from '../../system/system.js';
import type { ChildUnderWay } from '../children/children.js';
import { childrenUnderWay, endOf, failureOfParent, failureWith } from '../children/children.js';
import { childRequest } from '../children/request.js';
import { RunCorrupt, RunErased, RunFinished, RunUnknown } from '../errors.js';
import type { DraftParser } from '../pending-events.js';
import type { RunState } from '../state.js';
import { failureOf, isFinished } from '../state.js';
import type { LiveRuns, RunRepository } from './repository.js';

interface ChildRunsDeps {
  readonly live: LiveRuns;
  readonly repository: Pick<RunRepository, 'loadOnceAvailable' | 'reportFault' | 'assertTakingWork'>;
  readonly drafts: DraftParser;
  readonly system: System;
  readonly tasks: TaskTracker;
  /** As `start` of the runs, also while others may not start. */
  readonly startOnce: (request: RunRequestedData) => Promise<RunRequestedData>;
  /** As `refuse` of the runs, also while others may not start. */
  readonly refuse: (request: RunRequestedData, failure: RunFailedData) => Promise<RunRequestedData>;
  /** @throws {RunFinished | RunUnknown | RunCorrupt | RunErased} */
  readonly endWithParent: (runId: string, failure: RunFailedData) => Promise<RunState>;
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
    const recorded = await this.#retried(() => this.#deps.startOnce(request));
    // An actor here may not know yet that another instance has recorded its end.
    const found = recorded === request ? null : await this.#deps.repository.loadOnceAvailable(request.runId);
    if (found !== null) await this.#tellParent(found.snapshot.context.run);
  }

  /** Passes the end of a run to its parent. Receives each run once an event of it is folded. */
  onRunFolded(run: RunState): void {
    if (run.parentRun === null || !isFinished(run)) return;
    const { tasks, repository } = this.#deps;
    const told = tasks.track(this.#tellParent(run));
    told.catch((error: unknown) => tasks.isEnding || repository.reportFault(run.runId, error));
  }

  async #tellParent(child: RunState): Promise<void> {
    const end = endOf(child);
    if (child.parentRun === null || end === null) return;
    await this.#deps.drafts.load();
    const failure = failureOfParent(child);
    await this.#deps.live.get(child.parentRun.runId)?.send({ type: 'EndChild', end, failure });
  }

  /**
   * Cancels the runs that a run waits for, if a decision ends it, so that their usage is recorded with its end.
   *
   * @param before the run before the decision
   * @returns their ends; none of a run that cannot go on, because its record is corrupt, erased or too large for an append
   * @throws {ServiceStopping}
   */
  async end(before: RunState, after: RunState): Promise<readonly ChildEndedData[]> {
    const failure = failureOf(after);
    const open = failure === null ? [] : childrenUnderWay(after);
    if (failure === null || open.length === 0) return [];
    await this.#deps.drafts.load();
    const own = failureWith(before, failure);
    const ends = await Promise.all(open.map((each) => this.#retried(() => this.#end(before, each, own))));
    return ends.flatMap((end) => end ?? []);
  }

  async #end(run: RunState, { at, child }: ChildUnderWay, failure: RunFailedData): Promise<ChildEndedData | null> {
    const { repository, system, drafts, endWithParent, refuse } = this.#deps;
    const { runId } = child;
    for (;;) {
      repository.assertTakingWork();
      try {
        return endOf(await endWithParent(runId, failure));
      } catch (error) {
        if (error instanceof RunCorrupt || error instanceof RunErased) return null;
        if (error instanceof RunFinished) {
          const found = await repository.loadOnceAvailable(runId);
          return found === null ? null : endOf(found.snapshot.context.run);
        }
        if (!(error instanceof RunUnknown)) throw error;
      }
      try {
        // Its start may be under way on another instance: only the first of both appends is recorded.
        const request = childRequest(run, at, { child, sha256: system.sha256, itemsOf: drafts.itemsOf });
        await refuse(request, failure);
      } catch (error) {
        if (error instanceof AppendTooLarge) return null;
        throw error;
      }
    }
  }

  #retried<T>(work: () => Promise<T>): Promise<T> {
    const { system, tasks } = this.#deps;
    return retryWhileUnavailable(work, { system, signal: tasks.signal });
  }
}
