/**
 * The runs of this instance: starts them, finds them, stops them, takes up what a dead owner left. A run lives in
 * memory while it runs here; every other run is replayed from the log when something is asked of it, and the exact
 * revision of its append is all the locking there is.
 */
import { KeyReused, RevisionConflict, RunFinished, RunUnknown, ServiceStopping } from '../errors.js';
import type { RunFailedData, RunRequestedData } from '../generated/schemas.js';
import { appendSurely, untilAnswered } from '../log/append-surely.js';
import { wait } from '../wait.js';
import type { RunSurroundings } from './actor.js';
import { RunActor } from './actor.js';
import type { Admission } from './admission.js';
import { admission } from './admission.js';
import type { Charts } from './charts.js';
import type { RunCommand } from './decide.js';
import { decide, requestRun } from './decide.js';
import type { RunFact } from './events.js';
import { runStream } from './events.js';
import type { Chart, RunSnapshot } from './machine.js';
import { evolve } from './evolve.js';
import { sceneNow } from './minutes.js';
import { refuseRun } from './request.js';
import type { RunState } from './state.js';
import { readRun, replayRun, sealFacts } from './stream.js';
import { underWay } from './under-way.js';

/** Longest that stop() waits for the log to take the releases, in milliseconds; what it misses is recovered instead. */
const RELEASE_DEADLINE_MS = 5_000;

export interface RegistryOptions {
  readonly maxActiveRuns: number;
  /** Told when a run is no longer run here, with the state it left in. */
  readonly onLeft: (run: RunState) => void;
}

/** A run replayed, or about to begin. */
interface Replayed {
  readonly chart: Chart;
  readonly snapshot: RunSnapshot | null;
}

export class RunRegistry {
  readonly #around: RunSurroundings;
  readonly #charts: Charts;
  readonly #admission: Admission;
  readonly #onLeft: RegistryOptions['onLeft'];
  readonly #live = new Map<string, RunActor>();
  /** Starts under way: an equal one waits for the first, whatever room there is, and gets its answer. */
  readonly #starting = new Map<string, Promise<RunRequestedData>>();
  /** Admissions, claims and commands, so that stop() can wait for them. */
  readonly #underWay = underWay();

  constructor(around: Omit<RunSurroundings, 'onLeft'>, charts: Charts, { maxActiveRuns, onLeft }: RegistryOptions) {
    this.#onLeft = onLeft;
    this.#around = { ...around, onLeft: (run) => this.#left(run) };
    this.#charts = charts;
    this.#admission = admission(maxActiveRuns, (runId) => void this.#underWay.track(this.#admit(runId)));
  }

  /** The run as its actor holds it, when it runs here. */
  live(runId: string): RunState | null {
    return this.#live.get(runId)?.run ?? null;
  }

  /**
   * Records a new run and starts it, or lets it wait when as many as may be are active. Resolves once its first event
   * is durable.
   *
   * @returns what was requested: on a repeated key that of the first request
   * @throws {KeyReused} the run exists and was requested with another body
   * @throws {TooManyPending} nothing is recorded
   */
  async start(requested: RunRequestedData): Promise<RunRequestedData> {
    const { runId, bodyHash } = requested;
    const earlier = this.#starting.get(runId);
    if (earlier !== undefined) {
      await earlier.catch(() => undefined);
      const repeated = await this.repeated(runId, bodyHash);
      if (repeated !== null) return repeated;
    }
    const starting = this.#underWay.track(this.#start(requested));
    this.#starting.set(runId, starting);
    try {
      return await starting;
    } catch (error) {
      return await this.#firstOf(requested, error);
    } finally {
      this.#starting.delete(runId);
    }
  }

  async #start(requested: RunRequestedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    const chart = this.#charts.of(requested);
    const claim = this.#admission.tryEnter();
    if (!claim) this.#admission.announce();
    try {
      const facts = requestRun(chart, requested, { claim, scene: sceneNow(this.#around) });
      await this.#record(requested.runId, { chart, snapshot: null }, facts);
      if (!claim) this.#admission.wait(requested.runId);
      return requested;
    } catch (error) {
      if (claim) this.#admission.leave();
      throw error;
    } finally {
      if (!claim) this.#admission.arrived();
    }
  }

  /** Records a run that cannot begin: it is requested and fails in one append. Answers and throws as start does. */
  async refuse(requested: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    const chart = this.#charts.of(requested);
    const recorded = this.#record(requested.runId, { chart, snapshot: null }, refuseRun(requested, failure));
    return await this.#underWay.track(recorded).then(
      () => requested,
      (error: unknown) => this.#firstOf(requested, error),
    );
  }

  /**
   * What an earlier request with the same key asked for; null when there was none.
   *
   * @throws {KeyReused} its body was another
   */
  async repeated(runId: string, bodyHash: string): Promise<RunRequestedData | null> {
    for await (const event of readRun(this.#around.log, runId, { max: 1 })) {
      if (event.type !== 'RunRequested') break;
      if (event.data.bodyHash !== bodyHash) throw new KeyReused({ runId });
      return event.data;
    }
    return null;
  }

  /**
   * Fails an unfinished run at the user's wish, wherever it stands.
   *
   * @throws {RunUnknown | RunFinished | RunDamaged}
   */
  async cancel(runId: string): Promise<RunState> {
    const run = await this.#underWay.track(this.#command(runId, { type: 'CancelRun' }));
    this.#admission.forget(runId);
    return run;
  }

  /** Queues runs that nobody runs, pending ones and those of a dead or stopped owner, in the order given. */
  recover(runIds: Iterable<string>): void {
    for (const runId of runIds) this.#admission.wait(runId);
  }

  /** Takes no new work, gives up the calls under way and releases every run, so that anyone may go on with it. */
  async stop(): Promise<void> {
    this.#admission.close();
    await this.#underWay.end();
    const actors = [...this.#live.values()];
    const released = new AbortController();
    const deadline = wait(this.#around.ambient, RELEASE_DEADLINE_MS, released.signal);
    await Promise.race([Promise.allSettled(actors.map((actor) => actor.release())), deadline]);
    released.abort();
    for (const actor of actors) actor.stop();
    this.#live.clear();
  }

  /** The state after a command that must mean something; decided again whenever someone else was faster. */
  async #command(runId: string, command: RunCommand): Promise<RunState> {
    for (;;) {
      this.#assertTakingWork();
      const actor = this.#live.get(runId);
      const state = actor === undefined ? await this.#commandAtRest(runId, command) : await this.#tell(actor, command);
      if (state !== null) return state;
    }
  }

  /** @returns null when the actor has lost the run in the meantime */
  async #tell(actor: RunActor, command: RunCommand): Promise<RunState | null> {
    const facts = await actor.send(command);
    if (facts === null) return null;
    if (facts.length === 0) throw tooLate(actor.run, command);
    return actor.run;
  }

  /** @returns null when another append came first */
  async #commandAtRest(runId: string, command: RunCommand): Promise<RunState | null> {
    const replayed = await this.#replay(runId);
    if (replayed === null) throw new RunUnknown({ runId });
    const facts = decide(replayed.chart, replayed.snapshot, { command, scene: sceneNow(this.#around) });
    if (facts.length === 0) throw tooLate(replayed.snapshot.context.run, command);
    return await this.#record(runId, replayed, facts).catch(nullOnConflict);
  }

  /** Runs a run that holds a place: one that waited, or that was left by its owner. */
  async #admit(runId: string): Promise<void> {
    try {
      for (;;) {
        const replayed = await this.#underWay.untilEnd((signal) =>
          untilAnswered(() => this.#replay(runId), { ambient: this.#around.ambient, signal }),
        );
        const facts = replayed === null ? [] : this.#claim(replayed.chart, replayed.snapshot);
        if (replayed === null || facts.length === 0) break;
        const claimed = await this.#record(runId, replayed, facts).catch(nullOnConflict);
        if (claimed !== null) return;
      }
    } catch (error) {
      this.#around.onFault(runId, error);
    }
    this.#admission.leave();
  }

  /** The facts of taking a run; none when it is run here already, as one is that was started before the recovery. */
  #claim(chart: Chart, snapshot: RunSnapshot): readonly RunFact[] {
    const { status, owner } = snapshot.context.run;
    if (owner === this.#around.instanceId) return [];
    const reason = status === 'pending' ? 'started' : owner === null ? 'handover' : 'recovered';
    return decide(chart, snapshot, { command: { type: 'ClaimRun', reason }, scene: sceneNow(this.#around) });
  }

  /** Appends facts to a run at rest, or to a new one; if they claim it, its actor goes on from there. */
  async #record(runId: string, { chart, snapshot }: Replayed, facts: readonly RunFact[]): Promise<RunState> {
    const head = snapshot?.context.run ?? null;
    const sealed = sealFacts(facts, { head, runId, around: this.#around });
    const append = { stream: runStream(runId), events: sealed.events, expected: head?.seq ?? ('none' as const) };
    const { log, ambient } = this.#around;
    await this.#underWay.untilEnd((signal) => appendSurely(log, append, { ambient, signal }));
    const start = snapshot ?? chart.first(sealed.recorded[0]);
    const rest = snapshot === null ? sealed.recorded.slice(1) : sealed.recorded;
    if (!facts.some((fact) => fact.type === 'RunClaimed')) return rest.reduce(evolve, start.context.run);
    const actor = new RunActor(chart, start, this.#around);
    this.#live.set(runId, actor);
    actor.adopt(rest);
    return actor.run;
  }

  /** What was requested under an id first, when that is why a request could not be recorded. */
  async #firstOf(requested: RunRequestedData, error: unknown): Promise<RunRequestedData> {
    if (!(error instanceof RevisionConflict)) throw error;
    return (await this.repeated(requested.runId, requested.bodyHash)) ?? requested;
  }

  #replay(runId: string): ReturnType<typeof replayRun> {
    return replayRun(this.#around.log, runId, { charts: this.#charts, sha256: this.#around.ambient.sha256 });
  }

  /** A run is no longer run here: it has ended, paused, or gone to another owner. */
  #left(run: RunState): void {
    if (!this.#live.delete(run.runId)) return;
    this.#onLeft(run);
    this.#admission.leave();
  }

  #assertTakingWork(): void {
    if (this.#underWay.isEnding) throw new ServiceStopping();
  }
}

function tooLate(run: RunState, command: RunCommand): RunFinished {
  return new RunFinished({ runId: run.runId, status: run.status, action: ACTIONS[command.type] });
}

const ACTIONS: Readonly<Record<RunCommand['type'], string>> = {
  ClaimRun: 'claim',
  CompleteNode: 'report to',
  FailNode: 'report to',
  FailRun: 'fail',
  CancelRun: 'cancel',
  ReleaseRun: 'release',
};

function nullOnConflict(error: unknown): null {
  if (error instanceof RevisionConflict) return null;
  throw error;
}
