/**
 * The live runs of this instance, and the way to all others: starts, resumes, cancels and takes over. A run has an actor
 * in memory while it is live here; any other is replayed from the log when a command comes for it. The expected revision
 * of each append is the only lock.
 */
import { ServiceStopping } from '../../errors.js';
import type { RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import { appendWithRetry, retryWhileUnavailable } from '../../eventsourcing/append-with-retry.js';
import { sealAppend } from '../../eventsourcing/handle-command.js';
import { settledWithin } from '../../system/async/deadline.js';
import type { Decided, RunActorDeps } from './actor.js';
import { asRecorded, RunActor } from './actor.js';
import type { Admission } from './admission.js';
import { admission } from './admission.js';
import { cancelRun } from '../commands/cancel.js';
import type { MachineCache, RunSnapshot } from '../machine.js';
import type { RunEvent, RunFact } from '../events.js';
import { claimsRun } from '../events.js';
import type { DecisionAnswer, DecisionRequest } from '../commands/decide-pause.js';
import { decidePause, passPauseDeadline, repeatedVotes } from '../commands/decide-pause.js';
import type { PendingEvents } from '../pending-events.js';
import { decisionContext } from '../pending-events.js';
import { RunStarts, requestedBefore } from '../commands/start.js';
import type { TakeoverDeps } from '../commands/take-over.js';
import { takeRun } from '../commands/take-over.js';
import type { RunState, UnfinishedRun } from '../state.js';
import { factsAfter } from '../stream.js';
import type { KnownCorruptRuns, Replay } from '../replay.js';
import { assertReaches, replayRun } from '../replay.js';
import { semaphore } from '../../system/async/semaphore.js';
import { RefCount } from '../../system/async/ref-count.js';
import { TaskTracker } from '../../system/async/task-tracker.js';

/** How long stop() waits for the log to take the releases, in milliseconds; runs not released by then are recovered as orphans. */
const RELEASE_DEADLINE_MS = 5_000;

export interface RegistryOptions {
  readonly maxActiveRuns: number;
  /** Whether a run may be taken from another instance that owns it, because that one is suspected to be dead. */
  readonly isSuspect: (instanceId: string) => boolean;
  /** Called when a run is no longer live here, with its last state. */
  readonly onLeft: (run: RunState) => void;
  /** Called with the state of a run that is not live here, once it is appended or read: the feed may deliver it later. */
  readonly onLearned?: (run: RunState) => void;
  /** Runs that are not continued; one found corrupt on its replay is added. */
  readonly corruptRuns: KnownCorruptRuns;
  /** Asked before a command is decided on what is recorded. @throws {RunCorrupt} when the record has lost its tail */
  readonly assertReaches?: (runId: string) => Promise<void>;
  /** Called with a run that was taken up and read whole, up to the event it is known to have had at least. */
  readonly onWhole?: (runId: string) => void;
}

/** Runs that are read and claimed at once: enough to fill a group commit. With many more all wait before any goes on. */
const TAKEN_AT_ONCE = 64;

/** A replayed run, or a new one without a snapshot. */
type Replayed = Pick<Replay, 'chart'> & {
  readonly snapshot: RunSnapshot | null;
  /** When what is recorded was decided; absent: now. */
  readonly at?: string;
  /** Whether to wait while the disk is full; absent: the caller gets the error, and may retry. */
  readonly waitsForRoom?: boolean;
  /** The decision on a new run: saves computing its transitions again. */
  readonly claim?: PendingEvents | null;
};

/** A recorded claim, and whether others may have appended since: its append was retried, or overtaken here. */
interface Claimed {
  readonly recorded: readonly RunEvent[];
  readonly decided: Decided;
  readonly isLate: boolean;
}

export class RunRegistry {
  readonly #deps: RunActorDeps;
  readonly #machines: MachineCache;
  readonly #admission: Admission;
  readonly #options: RegistryOptions;
  readonly #starts: RunStarts;
  readonly #live = new Map<string, RunActor>();
  /** Runs being claimed here whose stream got another append beside the claim. */
  readonly #overtaken = new Set<string>();
  /** Runs being claimed here: their claim is not appended or not adopted yet. */
  readonly #claiming = new RefCount();
  /** Runs to which something is being appended here that claims nothing: a cancel, a vote. */
  readonly #appending = new RefCount();
  /** What is known of runs that are queued to be taken up: see `UnfinishedRun.seq`. */
  readonly #known = new Map<string, number>();
  readonly #taking = semaphore(TAKEN_AT_ONCE);
  readonly #repeatedVotes = repeatedVotes();
  /** Admissions, claims and commands, so that stop() can wait for them. */
  readonly #tasks = new TaskTracker();

  constructor(deps: Omit<RunActorDeps, 'onLeft'>, machines: MachineCache, options: RegistryOptions) {
    this.#options = options;
    this.#deps = { ...deps, onLeft: (run) => this.#left(run) };
    this.#machines = machines;
    this.#admission = admission(options.maxActiveRuns, (runId) => void this.#tasks.track(this.#admit(runId)));
    this.#starts = new RunStarts({
      actorDeps: this.#deps,
      machines,
      admission: this.#admission,
      record: (runId, chart, { facts, claim }) => this.#record(runId, { chart, snapshot: null, claim }, facts),
    });
  }

  /** The state of a run that is live here; null for any other. */
  live(runId: string): RunState | null {
    return this.#live.get(runId)?.run ?? null;
  }

  /** Whether a run is live here, being claimed or queued. */
  holds(runId: string): boolean {
    return this.#live.has(runId) || this.#claiming.of(runId) > 0 || this.#admission.isWaiting(runId);
  }

  /** Records a new run and starts it, or leaves it pending: see commands/start.ts. */
  async start(requested: RunRequestedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    return await this.#tasks.track(this.#starts.start(requested));
  }

  /** Records a run that cannot begin: see commands/start.ts. */
  async refuse(requested: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    return await this.#tasks.track(this.#starts.refuse(requested, failure));
  }

  /** The facts a start would record: see commands/start.ts. */
  foresee(requested: RunRequestedData): readonly RunFact[] {
    return this.#starts.foresee(requested);
  }

  /** The recorded request of a run with the same key; null: there is none. @throws {KeyReused} when its body was another */
  repeated(runId: string, bodyHashes: readonly string[]): Promise<RunRequestedData | null> {
    return requestedBefore(this.#deps.log, runId, bodyHashes);
  }

  /**
   * Cancels an unfinished run, wherever it is.
   *
   * @param actor name of the key that cancels; null: the service has none
   * @throws {RunUnknown | RunFinished | RunCorrupt}
   */
  async cancel(runId: string, actor: string | null = null): Promise<RunState> {
    const cancelled = cancelRun(runId, {
      actor,
      context: () => decisionContext(this.#deps),
      live: () => {
        this.#assertTakingWork();
        return this.#live.get(runId);
      },
      replay: () => this.#replayForWork(runId),
      record: (replayed, facts) => this.#record(runId, replayed, facts),
    });
    const run = await this.#tasks.track(cancelled);
    this.leaveTo(runId);
    return run;
  }

  /**
   * Records a human's decision on the open pause and, unless it ends the run, continues it here.
   *
   * @throws {KeyReused | RunNotPaused | NotApprover | PauseMoved | OverrideRefused | RunCorrupt} or what `choose` throws; nothing is recorded
   */
  decidePause(runId: string, request: DecisionRequest): Promise<DecisionAnswer> {
    return this.#tasks.track(
      decidePause(runId, request, {
        context: () => decisionContext(this.#deps),
        replay: async () => {
          // Facts already recorded may still have to be adopted.
          await this.#live.get(runId)?.settled();
          return await this.#replayForWork(runId);
        },
        record: (replayed, facts) => this.#resume(runId, replayed, facts),
        repeatedVotes: this.#repeatedVotes,
      }),
    );
  }

  /**
   * Does what the open pause's deadline says, once it has passed.
   *
   * @returns the deadline that is open afterwards, ISO 8601: its time has not come, or no slot is free; null: none
   */
  async passDeadline(runId: string): Promise<string | null> {
    const passing = passPauseDeadline({
      context: () => decisionContext(this.#deps),
      replay: async () => {
        await this.#live.get(runId)?.settled();
        this.#assertTakingWork();
        await this.#options.assertReaches?.(runId);
        return await this.#replayOnceAvailable(runId);
      },
      record: async (replayed, facts, at) => {
        const takesSlot = claimsRun(facts);
        if (takesSlot && !this.#admission.tryEnter()) return false;
        await this.#recordIn(takesSlot, runId, { replayed: { ...replayed, at, waitsForRoom: true }, facts });
        return true;
      },
    });
    return await this.#tasks.track(passing);
  }

  /** Queues runs without a live owner, pending ones and orphans, in the order given. */
  recover(orphans: Iterable<Omit<UnfinishedRun, 'owner'>>): void {
    for (const { runId, seq } of orphans) {
      if (seq !== undefined) this.#known.set(runId, seq);
      this.#admission.wait(runId);
    }
  }

  /** Removes a run from the queue: another instance owns it by now, or it has finished. */
  leaveTo(runId: string): void {
    this.#admission.forget(runId);
    this.#known.delete(runId);
  }

  /** A run has come to an event: an actor that is live here catches up, one whose claim is about to be acknowledged reads on first. */
  noticed(runId: string, seq: number): void {
    const actor = this.#live.get(runId);
    if (actor === undefined && this.#claiming.of(runId) > 0) this.#overtaken.add(runId);
    if (actor === undefined || actor.run.head.seq >= seq) return;
    this.#tasks.track(actor.catchUp()).catch((error: unknown) => this.#deps.onFault(runId, error));
  }

  /** Stops all runs without recording anything: aborts their attempts and forgets them. */
  abandon(): void {
    for (const actor of [...this.#live.values()]) actor.stop();
  }

  /** Takes no new work, aborts all attempts and releases every run, so that any instance may claim it. */
  async stop(): Promise<void> {
    this.#admission.close();
    await this.#tasks.end();
    const actors = [...this.#live.values()];
    const released = Promise.allSettled(actors.map((actor) => actor.release()));
    await settledWithin(released, { system: this.#deps.system, maxMs: RELEASE_DEADLINE_MS });
    for (const actor of actors) actor.stop();
    this.#live.clear();
  }

  /** Records the facts of a decided pause; a run that continues takes a slot even if none is free. */
  async #resume(runId: string, replayed: Replay, facts: readonly RunFact[]): Promise<void> {
    const takesSlot = claimsRun(facts);
    if (takesSlot) this.#admission.enter();
    await this.#recordIn(takesSlot, runId, { replayed, facts });
  }

  /** Records facts; a slot that was taken for them is freed again when they are not written. */
  async #recordIn(
    takesSlot: boolean,
    runId: string,
    { replayed, facts }: { readonly replayed: Replayed; readonly facts: readonly RunFact[] },
  ): Promise<void> {
    await this.#record(runId, replayed, facts).catch((error: unknown) => {
      if (takesSlot) this.#admission.leave();
      throw error;
    });
  }

  /** Claims a queued run that has been given a slot; frees the slot when the run cannot be claimed. */
  async #admit(runId: string): Promise<void> {
    try {
      if (!this.holds(runId) && (await this.#claim(runId, () => this.#takeInTurn(runId)))) return;
    } catch (error) {
      this.#deps.onFault(runId, error);
    } finally {
      this.#known.delete(runId);
    }
    this.#admission.leave();
  }

  async #takeInTurn(runId: string): Promise<boolean> {
    const deps: TakeoverDeps = {
      context: () => decisionContext(this.#deps),
      replay: () => this.#replayWhole(runId),
      record: (replayed, facts) => this.#record(runId, { ...replayed, waitsForRoom: true }, facts),
      isHeld: () => this.#live.has(runId) || this.#claiming.of(runId) > 1,
      isSuspect: this.#options.isSuspect,
      onRefused: (run) => this.#options.onLearned?.(run),
    };
    return await this.#taking.run(async () => !this.#tasks.isEnding && (await takeRun(deps)));
  }

  /** Appends facts to a run that is not live here, or to a new one; if they claim the run, its actor starts. */
  #record(runId: string, replayed: Replayed, facts: readonly RunFact[]): Promise<RunState> {
    const append = (): Promise<RunState> => this.#append(runId, replayed, facts);
    return claimsRun(facts) ? this.#claim(runId, append) : this.#appending.during(runId, append);
  }

  /** Work that may claim a run; once none is left, nothing can overtake it. */
  async #claim<T>(runId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#claiming.during(runId, work);
    } finally {
      if (this.#claiming.of(runId) === 0) this.#overtaken.delete(runId);
    }
  }

  async #append(runId: string, replayed: Replayed, facts: readonly RunFact[]): Promise<RunState> {
    const { log, system, ownAppends } = this.#deps;
    const { chart, snapshot, claim, waitsForRoom = false } = replayed;
    const before = snapshot?.context.run ?? null;
    const placed = factsAfter(before?.head ?? null, runId, facts);
    const sealed = sealAppend(this.#deps, { ...placed, ...decidedAt(replayed) });
    const start = snapshot ?? chart.first(sealed.recorded[0]);
    const to = outcomeOf(replayed, { start, recorded: sealed.recorded });
    const append = { before, events: sealed.recorded, after: to.context.run };
    const { isRepeated } = await ownAppends.during(append, () =>
      appendWithRetry(log, sealed, { system, waitsForRoom, signal: this.#tasks.signal }),
    );
    if (!claimsRun(facts)) {
      this.noticed(runId, append.after.head.seq);
      this.#options.onLearned?.(append.after);
      return append.after;
    }
    // What is appended beside the claim may be recorded already, and its answer on the way.
    const hasWaited = await this.#appending.none(runId);
    const isLate = this.#overtaken.delete(runId) || isRepeated || hasWaited;
    const claimed = { recorded: sealed.recorded, decided: { to, assignments: claim?.assignments }, isLate };
    return await this.#goOn(new RunActor(chart, start, this.#deps), claimed);
  }

  /** Makes an actor live whose run was claimed here, which holds a slot. */
  async #goOn(actor: RunActor, { recorded, decided, isLate }: Claimed): Promise<RunState> {
    const { runId, head } = decided.to.context.run;
    const other = this.#live.get(runId);
    // The log has acknowledged late: the run has gone on here meanwhile, with a slot of its own.
    if (other !== undefined && other.run.head.seq >= head.seq) {
      this.#admission.leave();
      return other.run;
    }
    // It does not know yet that it has lost the run.
    other?.stop();
    this.#live.set(runId, actor);
    if (isLate) await actor.adoptLate(recorded, decided);
    else actor.adopt(recorded, decided);
    return actor.run;
  }

  /** @throws {RunCorrupt} also when the record ends before what is known of it */
  async #replayWhole(runId: string): Promise<Replay | null> {
    const known = this.#known.get(runId);
    const replayed = await this.#replayOnceAvailable(runId);
    if (known !== undefined) {
      await assertReaches(runId, replayed, { seen: known, log: this.#deps.log });
      this.#options.onWhole?.(runId);
    }
    return replayed;
  }

  /** Retries for as long as the log is unavailable: no caller waits for the result. */
  #replayOnceAvailable(runId: string): Promise<Replay | null> {
    const { system } = this.#deps;
    return retryWhileUnavailable(() => this.#replay(runId), { system, signal: this.#tasks.signal });
  }

  async #replayForWork(runId: string): Promise<Replay | null> {
    this.#assertTakingWork();
    await this.#options.assertReaches?.(runId);
    const replayed = await this.#replay(runId);
    if (replayed !== null) this.noticed(runId, replayed.snapshot.context.run.head.seq);
    return replayed;
  }

  #replay(runId: string): Promise<Replay | null> {
    const { log, system } = this.#deps;
    const { corruptRuns } = this.#options;
    return replayRun(log, runId, { machines: this.#machines, sha256: system.sha256, corruptRuns });
  }

  /** A run is no longer live here: it has finished, paused, or gone to another owner. */
  #left(run: RunState): void {
    if (!this.#live.delete(run.runId)) return;
    this.#options.onLearned?.(run);
    this.#options.onLeft(run);
    this.#admission.leave();
  }

  #assertTakingWork(): void {
    if (this.#tasks.isEnding) throw new ServiceStopping();
  }
}

/** A claim has been folded at the time of its decision, so it is recorded with that. */
function decidedAt({ at, claim }: Replayed): { readonly at?: string } {
  const decided = claim?.context.at ?? at;
  return decided === undefined ? {} : { at: decided };
}

/** The snapshot after facts as recorded. @throws {TransitionRefused} when the chart does not allow one of them */
function outcomeOf(
  { chart, snapshot, claim }: Replayed,
  { start, recorded }: { readonly start: RunSnapshot; readonly recorded: readonly RunEvent[] },
): RunSnapshot {
  if (claim !== undefined && claim !== null) return asRecorded(claim.snapshot, recorded.at(-1));
  const rest = snapshot === null ? recorded.slice(1) : recorded;
  return rest.reduce((from, fact) => chart.next(from, fact), start);
}
