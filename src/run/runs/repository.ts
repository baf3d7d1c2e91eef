/**
 * Loads runs from the log and appends to them at the exact revision, which is the only lock. An append that claims a run
 * for this instance makes its actor live.
 */
import { ServiceStopping } from '../../errors.js';
import { RevisionConflict } from '../../eventlog/errors.js';
import type { RetryPolicy } from '../../eventlog/port.js';
import { retryWhileUnavailable } from '../../eventlog/port.js';
import { sealAppend } from '../../eventsourcing/aggregate.js';
import { semaphore } from '../../system/async/tasks.js';
import type { TaskTracker } from '../../system/async/tasks.js';
import type { Logger } from '../../system/logger.js';
import type { ChartCache } from '../chart/machine.js';
import { RunCorrupt } from '../errors.js';
import { claimsRun } from '../events.js';
import type { PendingEvents } from '../pending-events.js';
import type { KnownCorruptRuns, Replay } from '../replay.js';
import { replayRun } from '../replay.js';
import type { RunState } from '../state.js';
import { failureOf } from '../state.js';
import { factsAfter } from '../stream.js';
import type { ActorHost, RecordedDecision, RunActorDeps } from './actor.js';
import { RunActor } from './actor.js';
import type { RunReader } from './reader.js';
import type { RunStates } from './states.js';

/** The runs that have an actor in this process. */
export type LiveRuns = ReadonlyMap<string, RunActor>;

/** Receives the states of runs that are not live here. */
export interface RunObserver {
  /**
   * Called when this instance has appended to a run that is not live here, has read it, or has stopped its actor. The
   * subscription to the log may deliver the same events later.
   */
  onRunUpdated(run: RunState): void;
}

export interface RepositoryDeps extends Omit<RunActorDeps, 'host' | 'commands'> {
  readonly charts: ChartCache;
  /** Corrupt runs, which are not continued; one found corrupt when it is loaded is added. */
  readonly corruptRuns: KnownCorruptRuns;
  readonly reader: Pick<RunReader, 'seen'>;
  /** Makes each append. */
  readonly states: Pick<RunStates, 'append'>;
  readonly logger: Logger;
  /** The runs that are live here; empty at first. */
  readonly live: Map<string, RunActor>;
  readonly tasks: TaskTracker;
}

/**
 * Most commands of live runs that are decided and recorded at a time: enough to fill a group commit. Each keeps two states and
 * the texts of its events until the log acknowledges it; the others keep the answer of their model alone.
 */
const MAX_COMMANDS = 256;

/** Loads and appends runs; holds those that are live here. */
export class RunRepository implements ActorHost {
  readonly #deps: RepositoryDeps;
  readonly #actorDeps: RunActorDeps;
  readonly #live: Map<string, RunActor>;
  readonly #claims = new Claims();
  readonly #observers: RunObserver[] = [];

  constructor(deps: RepositoryDeps) {
    this.#deps = deps;
    this.#live = deps.live;
    this.#actorDeps = { ...deps, host: this, commands: semaphore(MAX_COMMANDS) };
  }

  subscribe(observer: RunObserver): void {
    this.#observers.push(observer);
  }

  /** @throws {ServiceStopping} */
  assertTakingWork(): void {
    if (this.#deps.tasks.isEnding) throw new ServiceStopping();
  }

  /** How many claims of a run are in flight here. */
  claimsInFlight(runId: string): number {
    return this.#claims.count(runId);
  }

  /** Counts work that may claim a run, until `endClaim`. */
  beginClaim(runId: string): void {
    this.#claims.begin(runId, 'claims');
  }

  endClaim(runId: string): void {
    this.#claims.end(runId, 'claims');
  }

  /** The recorded run, or null if there is none. @throws {ServiceStopping | RunCorrupt} */
  async load(runId: string): Promise<Replay | null> {
    this.assertTakingWork();
    // Read before the record, which only grows.
    const replayed = await this.#replay(runId, await this.#deps.reader.seen(runId));
    if (replayed !== null) this.catchUp(runId, replayed.snapshot.context.run.head.seq);
    return replayed;
  }

  /**
   * The recorded run, or null if there is none. Retries while the log is unavailable, because no caller waits.
   *
   * @param seen revision that the record must contain, or -1
   */
  loadOnceAvailable(runId: string, seen = -1): Promise<Replay | null> {
    const { system } = this.#deps;
    return retryWhileUnavailable(() => this.#replay(runId, seen), { system, signal: this.#deps.tasks.signal });
  }

  #replay(runId: string, seen: number): Promise<Replay | null> {
    const { log, system, corruptRuns, charts } = this.#deps;
    return replayRun(log, runId, { charts, sha256: system.sha256, corruptRuns, seen });
  }

  /**
   * Appends facts to a run that is not live here, or to a new one. If they claim the run, its actor starts.
   *
   * @param waitsForRoom whether to wait while the disk is full; else the caller gets the error
   * @returns the run after them, or null if another append came first
   */
  async append(pending: PendingEvents, { waitsForRoom = false } = {}): Promise<RunState | null> {
    const { system, tasks } = this.#deps;
    const { runId } = pending.run;
    const kind = claimsRun(pending.facts) ? 'claims' : 'others';
    this.#claims.begin(runId, kind);
    try {
      // 1. Record the facts.
      const recorded = await this.record(pending, { system, waitsForRoom, signal: tasks.signal });
      const after = recorded.to.context.run;
      if (kind === 'others') {
        this.catchUp(runId, after.head.seq);
        this.notify(after);
        return after;
      }
      // 2. Another append to this run may be recorded already, while its acknowledgement is still on the way.
      const hasWaited = await this.#claims.othersEnded(runId);
      // From here until the actor is live, this code must not await: an event delivered in between would be lost.
      const isLate = this.#claims.takeOvertaken(runId) || recorded.isRepeated || hasWaited;
      // 3. Make the actor of the claimed run live.
      return await this.#activate(pending, recorded, isLate);
    } catch (error) {
      if (error instanceof RevisionConflict) return null;
      throw error;
    } finally {
      this.#claims.end(runId, kind);
    }
  }

  /** Makes the actor of a claimed run live. The run holds a slot. */
  async #activate(pending: PendingEvents, recorded: RecordedDecision, isLate: boolean): Promise<RunState> {
    const { runId, head } = recorded.to.context.run;
    const other = this.#live.get(runId);
    // The log acknowledged this claim late. The run has continued here meanwhile, with another slot.
    if (other !== undefined && other.run.head.seq >= head.seq) {
      this.#deps.slots.leave();
      return other.run;
    }
    // The other actor does not know yet that it has lost the run.
    other?.stop();
    const actor = new RunActor(pending.chart, pending.from, this.#actorDeps);
    this.#live.set(runId, actor);
    if (isLate) await actor.adoptLate(recorded);
    else actor.adopt(recorded);
    return actor.run;
  }

  /**
   * Seals the facts of a decision and appends them, until the log acknowledges or refuses.
   *
   * @throws {RevisionConflict} when another append came first
   */
  async record(pending: PendingEvents, retryPolicy: RetryPolicy): Promise<RecordedDecision> {
    const { log, states } = this.#deps;
    const { before, run, facts, context, assignments } = pending;
    const sealed = sealAppend(this.#deps, { at: context.at, ...factsAfter(before?.head ?? null, run.runId, facts) });
    const to = pending.snapshotAt(sealed.recorded.at(-1));
    const { isRepeated } = await states.append(log, sealed, { before, after: to.context.run, retryPolicy });
    return { to, assignments, isRepeated };
  }

  /** Makes a live actor, or the claim under way, read events of another instance up to a revision. */
  catchUp(runId: string, seq: number): void {
    const actor = this.#live.get(runId);
    if (actor === undefined) this.#claims.markOvertaken(runId);
    else if (actor.run.head.seq < seq)
      this.#deps.tasks.track(actor.catchUp()).catch((error: unknown) => this.reportFault(runId, error));
  }

  /** Passes the state of a run that is not live here to the observers. */
  notify(run: RunState): void {
    for (const observer of this.#observers) observer.onRunUpdated(run);
  }

  onActorStopped(run: RunState): void {
    const { runId, phase, request, progress } = run;
    const actor = this.#live.get(runId);
    if (!this.#live.delete(runId)) return;
    this.notify(run);
    const failure = failureOf(run)?.kind;
    // Never a draft.
    const fields = { runId, status: phase.status, executionMode: request.executionMode, score: progress.shown.score };
    const more = { iterationCount: progress.iterationCount, ...(failure !== undefined && { failure }) };
    this.#deps.logger.info({ ...fields, ...more }, `run ${phase.status}`);
    if (actor?.isWaiting !== true) this.#deps.slots.leave();
  }

  reportFault(runId: string, error: unknown): void {
    const { corruptRuns, logger } = this.#deps;
    if (error instanceof RunCorrupt) corruptRuns.mark(error);
    else logger.error({ runId, err: error }, 'run: fault');
  }
}

// Appends in flight.

/** What is in flight to one run. */
interface InFlight {
  /** Work that may claim the run, until the claim is adopted. */
  claims: number;
  /** Appends that claim nothing: a cancellation, a vote. */
  others: number;
  /** Whether another event was recorded since the first claim began. */
  isOvertaken: boolean;
  /** Called once no append without a claim is in flight. */
  readonly waiting: (() => void)[];
}

/**
 * Counts the appends in flight to runs that are not live here. If another event is recorded after a claim and before the
 * log acknowledges the claim, the new actor must read the log before it acts.
 */
class Claims {
  readonly #byRun = new Map<string, InFlight>();

  /** How many claims of a run are in flight. */
  count(runId: string): number {
    return this.#byRun.get(runId)?.claims ?? 0;
  }

  /** Counts a claim of a run, or an append to it that claims nothing, until `end`. */
  begin(runId: string, kind: 'claims' | 'others'): void {
    let inFlight = this.#byRun.get(runId);
    if (inFlight === undefined) {
      inFlight = { claims: 0, others: 0, isOvertaken: false, waiting: [] };
      this.#byRun.set(runId, inFlight);
    }
    inFlight[kind] += 1;
  }

  end(runId: string, kind: 'claims' | 'others'): void {
    const inFlight = this.#byRun.get(runId);
    if (inFlight === undefined) return;
    inFlight[kind] -= 1;
    if (inFlight.claims === 0) inFlight.isOvertaken = false;
    if (inFlight.others === 0) for (const resolve of inFlight.waiting.splice(0)) resolve();
    if (inFlight.claims + inFlight.others === 0) this.#byRun.delete(runId);
  }

  /** Remembers that another event was recorded, if a claim of the run is in flight. */
  markOvertaken(runId: string): void {
    const inFlight = this.#byRun.get(runId);
    if (inFlight !== undefined && inFlight.claims > 0) inFlight.isOvertaken = true;
  }

  /** Resolves when this instance has no append without a claim in flight to the run, with whether it had to wait. */
  async othersEnded(runId: string): Promise<boolean> {
    const inFlight = this.#byRun.get(runId);
    if (inFlight === undefined || inFlight.others === 0) return false;
    await new Promise<void>((resolve) => inFlight.waiting.push(resolve));
    return true;
  }

  /** Returns whether another event was recorded since the claim began, and forgets it. */
  takeOvertaken(runId: string): boolean {
    const inFlight = this.#byRun.get(runId);
    const isOvertaken = inFlight?.isOvertaken === true;
    if (inFlight !== undefined) inFlight.isOvertaken = false;
    return isOvertaken;
  }
}
