/**
 * Loads runs from the log and appends to them at the exact revision, which is the only lock. An append that claims a run
 * for this instance makes its actor live.
 */
import { ServiceStopping } from '../../errors.js';
import { appendWithRetry, retryWhileUnavailable } from '../../eventsourcing/append-with-retry.js';
import { sealAppend } from '../../eventsourcing/handle-command.js';
import { semaphore } from '../../system/async/semaphore.js';
import type { TaskTracker } from '../../system/async/task-tracker.js';
import type { Logger } from '../../system/logger.js';
import { RunCorrupt } from '../errors.js';
import type { RunEvent, RunFact } from '../events.js';
import { claimsRun } from '../events.js';
import type { ChartCache, RunSnapshot } from '../chart/machine.js';
import type { DecisionContext, PendingEvents } from '../pending-events.js';
import { decisionContext } from '../pending-events.js';
import type { KnownCorruptRuns, Replay } from '../replay.js';
import { replayRun } from '../replay.js';
import type { RunState } from '../state.js';
import { failureOf } from '../state.js';
import { factsAfter } from '../stream.js';
import type { ActorHost, Decided, RunActorDeps } from './actor.js';
import { asRecorded, RunActor } from './actor.js';
import type { Admission } from './admission.js';
import { Claims } from './claims.js';
import type { LiveRuns } from './live-runs.js';
import { ownAppend } from './own-appends.js';

/** Receives the states of runs that are not live here. */
export interface RunObserver {
  /**
   * Called when this instance has appended to a run that is not live here, has read it, or has stopped its actor. The
   * subscription to the log may deliver the same events later.
   */
  onRunUpdated(run: RunState): void;
}

/**
 * Most commands of live runs that are decided and recorded at a time: enough to fill a group commit. Each keeps two states and
 * the texts of its events until the log acknowledges it; the others keep the answer of their model alone.
 */
const MAX_COMMANDS = 256;

export interface RunRepositoryDeps extends Omit<RunActorDeps, 'host' | 'commands'> {
  readonly charts: ChartCache;
  readonly liveRuns: LiveRuns;
  readonly admission: Admission;
  readonly tasks: TaskTracker;
  /** Corrupt runs, which are not continued; one found corrupt when it is loaded is added. */
  readonly corruptRuns: KnownCorruptRuns;
  /** Called before a command is decided. @throws {RunCorrupt} when the run's record has lost its end */
  readonly reader: { assertReaches(runId: string): Promise<void> };
  readonly logger: Logger;
}

/** What an append follows: a loaded run, or a new one without a snapshot. */
export interface AppendBase extends Pick<Replay, 'chart'> {
  readonly snapshot: RunSnapshot | null;
  /** When the facts were decided; default: now. */
  readonly at?: string;
  /** Whether to wait while the disk is full. Default: the caller gets the error. */
  readonly waitsForRoom?: boolean;
  /** The decision that claims a new run, so that its transitions are not computed again. */
  readonly claimDecision?: PendingEvents | null;
}

/** A recorded claim. */
interface Claimed {
  readonly recorded: readonly RunEvent[];
  readonly decided: Decided;
  /** Whether another append may have followed it. */
  readonly isLate: boolean;
}

export class RunRepository implements ActorHost {
  readonly #deps: RunRepositoryDeps;
  readonly #actorDeps: RunActorDeps;
  readonly #claims = new Claims();
  readonly #observers: RunObserver[] = [];

  constructor(deps: RunRepositoryDeps) {
    this.#deps = deps;
    this.#actorDeps = { ...deps, host: this, commands: semaphore(MAX_COMMANDS) };
  }

  subscribe(observer: RunObserver): void {
    this.#observers.push(observer);
  }

  /** The context of a decision taken now. */
  decisionContext(): DecisionContext {
    return decisionContext(this.#deps);
  }

  /** Whether a run is live here or being claimed. */
  holds(runId: string): boolean {
    return this.#deps.liveRuns.has(runId) || this.#claims.count(runId) > 0;
  }

  /** Whether a run that is being claimed is live here already, or is being claimed by another call too. */
  isHeldElsewhere(runId: string): boolean {
    return this.#deps.liveRuns.has(runId) || this.#claims.count(runId) > 1;
  }

  /** Does work that may claim a run. */
  duringClaim<T>(runId: string, work: () => Promise<T>): Promise<T> {
    return this.#claims.during(runId, work);
  }

  /** @throws {ServiceStopping} */
  assertTakingWork(): void {
    if (this.#deps.tasks.isEnding) throw new ServiceStopping();
  }

  /** @throws {RunCorrupt} when the record has lost its end */
  async assertReaches(runId: string): Promise<void> {
    await this.#deps.reader.assertReaches(runId);
  }

  /** The recorded run, or null if there is none. @throws {ServiceStopping | RunCorrupt} */
  async load(runId: string): Promise<Replay | null> {
    this.assertTakingWork();
    await this.assertReaches(runId);
    const replayed = await this.#replay(runId);
    if (replayed !== null) this.onEventRecorded(runId, replayed.snapshot.context.run.head.seq);
    return replayed;
  }

  /** The recorded run, or null if there is none. Retries while the log is unavailable, because no caller waits. */
  loadOnceAvailable(runId: string): Promise<Replay | null> {
    const { system, tasks } = this.#deps;
    return retryWhileUnavailable(() => this.#replay(runId), { system, signal: tasks.signal });
  }

  #replay(runId: string): Promise<Replay | null> {
    const { log, system, corruptRuns, charts } = this.#deps;
    return replayRun(log, runId, { charts, sha256: system.sha256, corruptRuns });
  }

  /**
   * Appends facts to a run that is not live here, or to a new one. If they claim the run, its actor starts.
   *
   * @throws {RevisionConflict} when another append came first
   */
  append(runId: string, base: AppendBase, facts: readonly RunFact[]): Promise<RunState> {
    const work = (): Promise<RunState> => this.#append(runId, base, facts);
    return claimsRun(facts) ? this.#claims.during(runId, work) : this.#claims.duringAppend(runId, work);
  }

  async #append(runId: string, base: AppendBase, facts: readonly RunFact[]): Promise<RunState> {
    const { log, system, ownAppends, tasks } = this.#deps;
    const { chart, snapshot, claimDecision, waitsForRoom = false } = base;
    const before = snapshot?.context.run ?? null;
    const sealed = sealAppend(this.#deps, factsFrom(base, runId, facts));
    const start = snapshot ?? chart.first(sealed.recorded[0]);
    const to = outcomeOf(base, { start, recorded: sealed.recorded });
    const run = to.context.run;
    const { isRepeated } = await ownAppends.during(ownAppend(sealed, { before, after: run }), () =>
      appendWithRetry(log, sealed, { system, waitsForRoom, signal: tasks.signal }),
    );
    if (!claimsRun(facts)) {
      this.onEventRecorded(runId, run.head.seq);
      this.notify(run);
      return run;
    }
    // Another append to this run may be recorded already, while its acknowledgement is still on the way.
    const hasWaited = await this.#claims.appendsSettled(runId);
    // From here until the actor is live, this code must not await: an event delivered in between would be lost.
    const isLate = this.#claims.takeOvertaken(runId) || isRepeated || hasWaited;
    const claimed = { recorded: sealed.recorded, decided: { to, assignments: claimDecision?.assignments }, isLate };
    return await this.#activate(new RunActor(chart, start, this.#actorDeps), claimed);
  }

  /** Makes the actor of a claimed run live. The run holds a slot. */
  async #activate(actor: RunActor, { recorded, decided, isLate }: Claimed): Promise<RunState> {
    const { liveRuns, admission } = this.#deps;
    const { runId, head } = decided.to.context.run;
    const other = liveRuns.actor(runId);
    // The log acknowledged this claim late. The run has continued here meanwhile, with another slot.
    if (other !== null && other.run.head.seq >= head.seq) {
      admission.leave();
      return other.run;
    }
    // The other actor does not know yet that it has lost the run.
    other?.stop();
    liveRuns.add(actor);
    if (isLate) await actor.adoptLate(recorded, decided);
    else actor.adopt(recorded, decided);
    return actor.run;
  }

  /** Makes a live actor, or the claim under way, read events of another instance up to a revision. */
  onEventRecorded(runId: string, seq: number): void {
    const actor = this.#deps.liveRuns.actor(runId);
    if (actor === null) this.#claims.markOvertaken(runId);
    if (actor === null || actor.run.head.seq >= seq) return;
    this.#deps.tasks.track(actor.catchUp()).catch((error: unknown) => this.reportFault(runId, error));
  }

  /** Notifies the observers of a run that is not live here. */
  notify(run: RunState): void {
    for (const observer of this.#observers) observer.onRunUpdated(run);
  }

  onActorStopped(run: RunState): void {
    const { liveRuns, admission, logger } = this.#deps;
    if (!liveRuns.remove(run.runId)) return;
    this.notify(run);
    logger.info(outcomeFields(run), `run ${run.phase.status}`);
    admission.leave();
  }

  reportFault(runId: string, error: unknown): void {
    const { corruptRuns, logger } = this.#deps;
    if (error instanceof RunCorrupt) corruptRuns.mark(error);
    else logger.error({ runId, err: error }, 'run: fault');
  }
}

/** Facts to seal. A claim was folded with the time of its decision, so it must be recorded with the same time. */
function factsFrom({ snapshot, at, claimDecision }: AppendBase, runId: string, facts: readonly RunFact[]) {
  const after = factsAfter(snapshot?.context.run.head ?? null, runId, facts);
  const decidedAt = claimDecision?.context.at ?? at;
  return decidedAt === undefined ? after : { at: decidedAt, ...after };
}

/** The snapshot after facts as recorded. @throws {TransitionRefused} when the chart does not allow one of them */
function outcomeOf(
  { chart, snapshot, claimDecision }: AppendBase,
  { start, recorded }: { readonly start: RunSnapshot; readonly recorded: readonly RunEvent[] },
): RunSnapshot {
  if (claimDecision !== undefined && claimDecision !== null) return asRecorded(claimDecision.snapshot, recorded.at(-1));
  const rest = snapshot === null ? recorded.slice(1) : recorded;
  return rest.reduce((from, fact) => chart.next(from, fact), start);
}

/** The fields of a run's log line when its actor stops: never a draft. */
function outcomeFields(run: RunState): object {
  const { runId, phase, request, progress } = run;
  const failure = failureOf(run);
  return {
    runId,
    status: phase.status,
    executionMode: request.executionMode,
    iterationCount: progress.iterationCount,
    score: progress.shown.score,
    ...(failure === null ? {} : { failure: failure.kind }),
  };
}
