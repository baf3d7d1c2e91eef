/**
 * The runs of this instance: starts them, finds them, stops them, takes up what a dead owner left. A run lives in
 * memory while it runs here; every other run is replayed from the log when something is asked of it, and the exact
 * revision of its append is all the locking there is.
 */
import { ServiceStopping } from '../../errors.js';
import type { RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import { appendWithRetry, retryWhileUnavailable } from '../../eventsourcing/append-with-retry.js';
import { wait } from '../../system/async/wait.js';
import type { RunActorDeps } from './actor.js';
import { RunActor } from './actor.js';
import type { Admission } from './admission.js';
import { admission } from './admission.js';
import { cancelRun } from '../commands/cancel.js';
import type { MachineCache, RunSnapshot } from '../machine.js';
import type { RunFact } from '../events.js';
import { claimsRun, runStream } from '../events.js';
import type { GateAnswer, GateRequest } from '../commands/decide-pause.js';
import { decidePause } from '../commands/decide-pause.js';
import { evolve } from '../evolve.js';
import { decisionContext } from '../pending-events.js';
import { requestedBefore } from '../commands/repeated.js';
import { RunStarts } from '../commands/start.js';
import { takeRun } from '../commands/take-over.js';
import type { RunState } from '../state.js';
import { sealFacts } from '../stream.js';
import type { KnownCorruptRuns, Replay } from '../replay.js';
import { replayRun } from '../replay.js';
import { taskTracker } from '../../system/async/task-tracker.js';

/** Longest that stop() waits for the log to take the releases, in milliseconds; what it misses is recovered instead. */
const RELEASE_DEADLINE_MS = 5_000;

export interface RegistryOptions {
  readonly maxActiveRuns: number;
  /** Whether a run may be taken from another instance that owns it, because that one is taken for dead. */
  readonly isSuspect: (instanceId: string) => boolean;
  /** Told when a run is no longer run here, with the state it left in. */
  readonly onLeft: (run: RunState) => void;
  /** None of them is gone on with; told of one that is found on its replay. */
  readonly corruptRuns: KnownCorruptRuns;
}

/** A run replayed, or about to begin. */
type Replayed = Pick<Replay, 'chart'> & { readonly snapshot: RunSnapshot | null };

export class RunRegistry {
  readonly #deps: RunActorDeps;
  readonly #machines: MachineCache;
  readonly #admission: Admission;
  readonly #options: RegistryOptions;
  readonly #starts: RunStarts;
  readonly #live = new Map<string, RunActor>();
  /** Runs about to be run here: what claims them is on its way to the log, or not adopted yet. */
  readonly #claiming = new RefCount();
  /** Admissions, claims and commands, so that stop() can wait for them. */
  readonly #tasks = taskTracker();

  constructor(deps: Omit<RunActorDeps, 'onLeft'>, machines: MachineCache, options: RegistryOptions) {
    this.#options = options;
    this.#deps = { ...deps, onLeft: (run) => this.#left(run) };
    this.#machines = machines;
    this.#admission = admission(options.maxActiveRuns, (runId) => void this.#tasks.track(this.#admit(runId)));
    this.#starts = new RunStarts({
      actorDeps: this.#deps,
      machines,
      admission: this.#admission,
      record: (runId, chart, facts) => this.#record(runId, { chart, snapshot: null }, facts),
    });
  }

  /** The run as its actor holds it, when it runs here. */
  live(runId: string): RunState | null {
    return this.#live.get(runId)?.run ?? null;
  }

  /** Whether a run is run here, or about to be. */
  holds(runId: string): boolean {
    return this.#live.has(runId) || this.#claiming.of(runId) > 0;
  }

  /** Records a new run and starts it, or lets it wait: see starts.ts. */
  async start(requested: RunRequestedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    return await this.#tasks.track(this.#starts.start(requested));
  }

  /** Records a run that cannot begin: see starts.ts. */
  async refuse(requested: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    return await this.#tasks.track(this.#starts.refuse(requested, failure));
  }

  /** What a start would record: see starts.ts. */
  foresee(requested: RunRequestedData): readonly RunFact[] {
    return this.#starts.foresee(requested);
  }

  /** What an earlier request with the same key asked for; null: there was none. @throws {KeyReused} its body was another */
  repeated(runId: string, bodyHashes: readonly string[]): Promise<RunRequestedData | null> {
    return requestedBefore(this.#deps.log, runId, bodyHashes);
  }

  /**
   * Fails an unfinished run at the user's wish, wherever it stands.
   *
   * @throws {RunUnknown | RunFinished | RunDamaged}
   */
  async cancel(runId: string): Promise<RunState> {
    const cancelled = cancelRun(runId, {
      context: () => decisionContext(this.#deps),
      live: () => {
        this.#assertTakingWork();
        return this.#live.get(runId);
      },
      replay: () => this.#replayForWork(runId),
      record: (replayed, facts) => this.#record(runId, replayed, facts),
    });
    const run = await this.#tasks.track(cancelled);
    this.#admission.forget(runId);
    return run;
  }

  /**
   * Records a human's decision on the open pause and, unless it ends the run, runs it here.
   *
   * @throws {KeyReused | RunNotPaused | PauseMoved | OverrideRefused | RunDamaged} or what `choose` throws; nothing is recorded
   */
  decideGate(runId: string, request: GateRequest): Promise<GateAnswer> {
    return this.#tasks.track(
      decidePause(runId, request, {
        context: () => decisionContext(this.#deps),
        replay: async () => {
          // What is recorded may still have to be adopted.
          await this.#live.get(runId)?.settled();
          return await this.#replayForWork(runId);
        },
        record: (replayed, facts) => this.#resume(runId, replayed, facts),
      }),
    );
  }

  /** Queues runs that nobody runs, pending ones and those of a dead or stopped owner, in the order given. */
  recover(runIds: Iterable<string>): void {
    for (const runId of runIds) this.#admission.wait(runId);
  }

  /** A run that waits for a place here is somebody's by now, or over. */
  leaveTo(runId: string): void {
    this.#admission.forget(runId);
  }

  /** Another instance has appended an event to a run; if it is run here, its actor adopts what it does not know. */
  noticed(runId: string, seq: number): void {
    const actor = this.#live.get(runId);
    if (actor === undefined || actor.run.seq >= seq) return;
    this.#tasks.track(actor.catchUp()).catch((error: unknown) => this.#deps.onFault(runId, error));
  }

  /** Lets all runs go without a word to the log: gives up their calls and forgets them. */
  abandon(): void {
    for (const actor of [...this.#live.values()]) actor.stop();
  }

  /** Takes no new work, gives up the calls under way and releases every run, so that anyone may go on with it. */
  async stop(): Promise<void> {
    this.#admission.close();
    await this.#tasks.end();
    const actors = [...this.#live.values()];
    const released = new AbortController();
    const deadline = wait(this.#deps.system, RELEASE_DEADLINE_MS, released.signal);
    await Promise.race([Promise.allSettled(actors.map((actor) => actor.release())), deadline]);
    released.abort();
    for (const actor of actors) actor.stop();
    this.#live.clear();
  }

  /** Records what was decided at a pause; a run that goes on takes a place in any case. */
  async #resume(runId: string, replayed: Replay, facts: readonly RunFact[]): Promise<void> {
    const takesPlace = claimsRun(facts);
    if (takesPlace) this.#admission.enter();
    await this.#record(runId, replayed, facts).catch((error: unknown) => {
      if (takesPlace) this.#admission.leave();
      throw error;
    });
  }

  /** Runs a run that holds a place: one that waited, or that was left by its owner. */
  async #admit(runId: string): Promise<void> {
    try {
      if (!this.holds(runId) && (await this.#claiming.during(runId, () => this.#take(runId)))) return;
    } catch (error) {
      this.#deps.onFault(runId, error);
    }
    this.#admission.leave();
  }

  #take(runId: string): Promise<boolean> {
    const { system } = this.#deps;
    return takeRun({
      context: () => decisionContext(this.#deps),
      replay: () =>
        this.#tasks.untilEnd((signal) => retryWhileUnavailable(() => this.#replay(runId), { system, signal })),
      record: (replayed, facts) => this.#record(runId, replayed, facts),
      isHeld: () => this.#live.has(runId) || this.#claiming.of(runId) > 1,
      isSuspect: this.#options.isSuspect,
    });
  }

  /** Appends facts to a run at rest, or to a new one; if they claim it, its actor goes on from there. */
  #record(runId: string, replayed: Replayed, facts: readonly RunFact[]): Promise<RunState> {
    const append = (): Promise<RunState> => this.#append(runId, replayed, facts);
    return claimsRun(facts) ? this.#claiming.during(runId, append) : append();
  }

  async #append(runId: string, { chart, snapshot }: Replayed, facts: readonly RunFact[]): Promise<RunState> {
    const head = snapshot?.context.run ?? null;
    const sealed = sealFacts(facts, { head, runId, deps: this.#deps });
    const append = { stream: runStream(runId), events: sealed.events, expected: head?.seq ?? ('none' as const) };
    const { log, system } = this.#deps;
    await this.#tasks.untilEnd((signal) => appendWithRetry(log, append, { system, signal }));
    const start = snapshot ?? chart.first(sealed.recorded[0]);
    const rest = snapshot === null ? sealed.recorded.slice(1) : sealed.recorded;
    if (!claimsRun(facts)) return rest.reduce(evolve, start.context.run);
    const actor = new RunActor(chart, start, this.#deps);
    this.#live.set(runId, actor);
    actor.adopt(rest);
    return actor.run;
  }

  #replayForWork(runId: string): Promise<Replay | null> {
    this.#assertTakingWork();
    return this.#replay(runId);
  }

  #replay(runId: string): Promise<Replay | null> {
    const replayDeps = {
      machines: this.#machines,
      sha256: this.#deps.system.sha256,
      corruptRuns: this.#options.corruptRuns,
    };
    return replayRun(this.#deps.log, runId, replayDeps);
  }

  /** A run is no longer run here: it has ended, paused, or gone to another owner. */
  #left(run: RunState): void {
    if (!this.#live.delete(run.runId)) return;
    this.#options.onLeft(run);
    this.#admission.leave();
  }

  #assertTakingWork(): void {
    if (this.#tasks.isEnding) throw new ServiceStopping();
  }
}

/** Counts things by name; what nobody counts any more is forgotten. */
class RefCount {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Counts a name for as long as some work lasts. */
  async during<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#counts.set(name, this.of(name) + 1);
    try {
      return await work();
    } finally {
      const left = this.of(name) - 1;
      if (left === 0) this.#counts.delete(name);
      else this.#counts.set(name, left);
    }
  }
}
