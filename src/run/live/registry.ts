/**
 * The commands on all runs. A run has an actor in memory while it is live here; any other is loaded from the log when a
 * command for it arrives.
 */
import type { Reservation, RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import { settledWithin } from '../../system/async/deadline.js';
import { reservationFor, unpricedModel } from '../budget/spending.js';
import { neededAfterPause } from '../budget/work.js';
import { TaskTracker } from '../../system/async/task-tracker.js';
import { cancelRun } from '../commands/cancel.js';
import type { DecisionAnswer, DecisionRequest } from '../commands/decide-pause.js';
import { PauseDecisions } from '../commands/decide-pause.js';
import { findRequest, RunStarts } from '../commands/start.js';
import type { FailureSuspicions } from '../commands/take-over.js';
import { Takeovers } from '../commands/take-over.js';
import type { RunFact } from '../events.js';
import type { NextAttempt } from '../frontier/next-calls.js';
import { nextAttempts } from '../frontier/next-calls.js';
import type { RunState, UnfinishedRun } from '../state.js';
import { openPauseOf } from '../state.js';
import { Admission } from './admission.js';
import type { RunObserver, RunRepositoryDeps } from './run-repository.js';
import { RunRepository } from './run-repository.js';

/**
 * How long stop() waits for the log to take the releases, in milliseconds. Other instances recover the runs that are not
 * released in that time as orphans.
 */
const RELEASE_DEADLINE_MS = 5_000;

export interface RegistryDeps extends Omit<RunRepositoryDeps, 'admission' | 'tasks'> {
  readonly maxActiveRuns: number;
  readonly suspicions: FailureSuspicions;
}

export class RunRegistry {
  readonly #deps: RegistryDeps;
  readonly #admission: Admission;
  readonly #runs: RunRepository;
  readonly #starts: RunStarts;
  readonly #pauses: PauseDecisions;
  readonly #takeovers: Takeovers;
  /** Admissions, claims and commands, so that stop() can wait for them. */
  readonly #tasks = new TaskTracker();
  /** Commands wait for this. */
  #ready: Promise<void> = Promise.resolve();

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
    this.#admission = new Admission(deps.maxActiveRuns);
    const [admission, tasks] = [this.#admission, this.#tasks];
    const runs = new RunRepository({ ...deps, admission, tasks });
    this.#runs = runs;
    this.#starts = new RunStarts({ ...deps, runs, admission });
    this.#pauses = new PauseDecisions({ runs, admission, liveRuns: deps.liveRuns });
    this.#takeovers = new Takeovers({ ...deps, runs, admission, tasks });
    admission.start(this.#takeovers);
  }

  /** Adds an observer of the runs that are not live here. */
  subscribe(observer: RunObserver): void {
    this.#runs.subscribe(observer);
  }

  /**
   * Delays the commands start, refuse, cancel and decidePause until the unfinished runs are queued, so that no new run
   * overtakes them.
   */
  delayCommandsUntil(ready: Promise<void>): void {
    this.#ready = ready;
  }

  /** The state of a run that is live here, or null. */
  live(runId: string): RunState | null {
    return this.#deps.liveRuns.state(runId);
  }

  /** How many runs are live here, and how many are queued for a slot. */
  load(): { readonly active: number; readonly queued: number } {
    return { active: this.#deps.liveRuns.size, queued: this.#admission.queued };
  }

  /** Whether a run is live here, being claimed or queued. */
  holds(runId: string): boolean {
    return this.#runs.holds(runId) || this.#admission.isQueued(runId);
  }

  /** Records a new run and starts it, or leaves it pending: see commands/start.ts. */
  async start(request: RunRequestedData): Promise<RunRequestedData> {
    await this.#ready;
    this.#runs.assertTakingWork();
    return await this.#tasks.track(this.#starts.start(request));
  }

  /** Records a run that cannot begin: see commands/start.ts. */
  async refuse(request: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    await this.#ready;
    this.#runs.assertTakingWork();
    return await this.#tasks.track(this.#starts.refuse(request, failure));
  }

  /** The facts that a start would record: see commands/start.ts. */
  previewStart(request: RunRequestedData): readonly RunFact[] {
    return this.#starts.preview(request);
  }

  /** The full name of a model without a price that a run with a budget in US dollars may call, or null. */
  unpricedModel({ budget, graph }: RunRequestedData): string | null {
    return (budget?.usd ?? null) === null ? null : unpricedModel(graph, this.#runs.decisionContext());
  }

  /** The least budget with which a run goes on, or null if it is not paused for its budget. */
  neededBudget(run: RunState): Reservation | null {
    const pause = openPauseOf(run);
    const { spending } = run;
    if (pause?.reason !== 'budget' || spending === null) return null;
    return reservationFor(neededAfterPause({ ...run, spending }, pause.nextNodes, this.#runs.decisionContext()));
  }

  /** The calls that follow when the open pause of a run is approved unchanged; empty if it has none. */
  nextAttempts(run: RunState): readonly NextAttempt[] {
    return nextAttempts(run, this.#runs.decisionContext());
  }

  /** The recorded request of a run with the same key, or null if there is none. @throws {KeyReused} when its body differs */
  findRequest(runId: string, bodyHashes: readonly string[]): Promise<RunRequestedData | null> {
    return findRequest(this.#deps.log, runId, bodyHashes);
  }

  /**
   * Cancels an unfinished run, whichever instance runs it.
   *
   * @param actor name of the key that cancels, or null if the service has none
   * @throws {RunUnknown | RunFinished | RunCorrupt}
   */
  async cancel(runId: string, actor: string | null = null): Promise<RunState> {
    await this.#ready;
    const deps = { runs: this.#runs, liveRuns: this.#deps.liveRuns };
    const run = await this.#tasks.track(cancelRun(runId, actor, deps));
    this.dequeue(runId);
    return run;
  }

  /**
   * Records a human's decision on the open pause and, unless it ends the run, continues it here.
   *
   * @throws {KeyReused | RunNotPaused | NotApprover | PauseMoved | OverrideRefused | RunCorrupt} or what `choose` throws; nothing is recorded
   */
  async decidePause(runId: string, request: DecisionRequest): Promise<DecisionAnswer> {
    await this.#ready;
    return await this.#tasks.track(this.#pauses.decide(runId, request));
  }

  /**
   * Applies the rule of the open pause's deadline, if it has passed.
   *
   * @returns the deadline of the pause that is open afterwards, ISO 8601, or null if there is none; see
   *   commands/decide-pause.ts
   */
  applyDeadline(runId: string): Promise<string | null> {
    return this.#tasks.track(this.#pauses.applyDeadline(runId));
  }

  /** Queues runs without a live owner, pending ones and orphans, in the order given. */
  recover(orphans: Iterable<Omit<UnfinishedRun, 'owner'>>): void {
    this.#takeovers.enqueue(orphans);
  }

  /** Removes a run from the queue: another instance owns it, or it has finished. */
  dequeue(runId: string): void {
    this.#takeovers.dequeue(runId);
  }

  /** Makes the live actor of a run read the events that another instance has recorded. */
  onEventRecorded(runId: string, seq: number): void {
    this.#runs.onEventRecorded(runId, seq);
  }

  /** Stops all runs without recording anything: aborts their attempts and forgets them. */
  abandon(): void {
    for (const actor of this.#deps.liveRuns.all()) actor.stop();
  }

  /** Takes no new work, aborts all attempts and releases every run, so that any instance may claim it. */
  async stop(): Promise<void> {
    const { liveRuns, system } = this.#deps;
    this.#admission.close();
    await this.#tasks.end();
    const actors = liveRuns.all();
    const released = Promise.allSettled(actors.map((actor) => actor.release()));
    await settledWithin(released, { system, maxMs: RELEASE_DEADLINE_MS });
    for (const actor of actors) actor.stop();
  }
}
