/**
 * The runs of this instance: starts them, finds them, stops them, takes up what a dead owner left. A run lives in
 * memory while it runs here; every other run is replayed from the log when something is asked of it, and the exact
 * revision of its append is all the locking there is.
 */
import { RunFinished, RunUnknown, ServiceStopping } from '../errors.js';
import type { RunFailedData, RunRequestedData } from '../generated/schemas.js';
import { appendSurely, untilAnswered } from '../log/append-surely.js';
import { wait } from '../wait.js';
import type { RunSurroundings } from './actor.js';
import { RunActor } from './actor.js';
import type { Admission } from './admission.js';
import { admission } from './admission.js';
import type { Charts } from './charts.js';
import type { RunCommand } from './decide.js';
import { decide } from './decide.js';
import { nullOnConflict } from './conflict.js';
import type { RunFact } from './events.js';
import { claimsRun, runStream } from './events.js';
import type { GateOutcome } from './gate.js';
import type { GateRequest } from './gate-keeping.js';
import { takeDecision } from './gate-keeping.js';
import type { Chart, RunSnapshot } from './machine.js';
import { evolve } from './evolve.js';
import { sceneNow } from './minutes.js';
import { requestedBefore } from './repeated.js';
import { RunStarts } from './starts.js';
import type { RunState } from './state.js';
import type { Replay } from './stream.js';
import { replayRun, sealFacts } from './stream.js';
import { underWay } from './under-way.js';

/** Longest that stop() waits for the log to take the releases, in milliseconds; what it misses is recovered instead. */
const RELEASE_DEADLINE_MS = 5_000;

export interface RegistryOptions {
  readonly maxActiveRuns: number;
  /** Told when a run is no longer run here, with the state it left in. */
  readonly onLeft: (run: RunState) => void;
}

const CANCEL: RunCommand = { type: 'CancelRun' };

/** A run replayed, or about to begin. */
type Replayed = Pick<Replay, 'chart'> & { readonly snapshot: RunSnapshot | null };

export class RunRegistry {
  readonly #around: RunSurroundings;
  readonly #charts: Charts;
  readonly #admission: Admission;
  readonly #onLeft: RegistryOptions['onLeft'];
  readonly #starts: RunStarts;
  readonly #live = new Map<string, RunActor>();
  /** Admissions, claims and commands, so that stop() can wait for them. */
  readonly #underWay = underWay();

  constructor(around: Omit<RunSurroundings, 'onLeft'>, charts: Charts, { maxActiveRuns, onLeft }: RegistryOptions) {
    this.#onLeft = onLeft;
    this.#around = { ...around, onLeft: (run) => this.#left(run) };
    this.#charts = charts;
    this.#admission = admission(maxActiveRuns, (runId) => void this.#underWay.track(this.#admit(runId)));
    this.#starts = new RunStarts({
      around: this.#around,
      charts,
      admission: this.#admission,
      record: (runId, chart, facts) => this.#record(runId, { chart, snapshot: null }, facts),
    });
  }

  /** The run as its actor holds it, when it runs here. */
  live(runId: string): RunState | null {
    return this.#live.get(runId)?.run ?? null;
  }

  /** Records a new run and starts it, or lets it wait: see starts.ts. */
  async start(requested: RunRequestedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    return await this.#underWay.track(this.#starts.start(requested));
  }

  /** Records a run that cannot begin: see starts.ts. */
  async refuse(requested: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    this.#assertTakingWork();
    return await this.#underWay.track(this.#starts.refuse(requested, failure));
  }

  /**
   * What an earlier request with the same key asked for; null when there was none.
   *
   * @throws {KeyReused} its body was another
   */
  repeated(runId: string, bodyHash: string): Promise<RunRequestedData | null> {
    return requestedBefore(this.#around.log, runId, bodyHash);
  }

  /**
   * Fails an unfinished run at the user's wish, wherever it stands.
   *
   * @throws {RunUnknown | RunFinished | RunDamaged}
   */
  async cancel(runId: string): Promise<RunState> {
    const run = await this.#underWay.track(this.#cancel(runId));
    this.#admission.forget(runId);
    return run;
  }

  /**
   * Records a human's decision on the open pause and, unless it ends the run, runs it here.
   *
   * @throws {KeyReused | RunNotPaused | PauseMoved | RunDamaged} or what `choose` throws; nothing is recorded
   */
  decideGate(runId: string, request: GateRequest): Promise<GateOutcome> {
    return this.#underWay.track(
      takeDecision(runId, request, {
        log: this.#around.log,
        scene: () => sceneNow(this.#around),
        replay: async () => {
          this.#assertTakingWork();
          // What is recorded may still have to be adopted.
          await this.#live.get(runId)?.settled();
          return await this.#replay(runId);
        },
        record: (replayed, facts) => this.#resume(runId, replayed, facts),
      }),
    );
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

  async #cancel(runId: string): Promise<RunState> {
    for (;;) {
      this.#assertTakingWork();
      const actor = this.#live.get(runId);
      const run = actor === undefined ? await this.#cancelAtRest(runId) : await this.#cancelLive(actor);
      if (run !== null) return run;
    }
  }

  /** @returns null when the actor has lost the run in the meantime */
  async #cancelLive(actor: RunActor): Promise<RunState | null> {
    const facts = await actor.send(CANCEL);
    if (facts?.length === 0) throw tooLateToCancel(actor.run);
    return facts === null ? null : actor.run;
  }

  /** @returns null when another append came first */
  async #cancelAtRest(runId: string): Promise<RunState | null> {
    const replayed = await this.#replay(runId);
    if (replayed === null) throw new RunUnknown({ runId });
    const facts = decide(replayed.chart, replayed.snapshot, { command: CANCEL, scene: sceneNow(this.#around) });
    if (facts.length === 0) throw tooLateToCancel(replayed.snapshot.context.run);
    return await this.#record(runId, replayed, facts).catch(nullOnConflict);
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
    if (!claimsRun(facts)) return rest.reduce(evolve, start.context.run);
    const actor = new RunActor(chart, start, this.#around);
    this.#live.set(runId, actor);
    actor.adopt(rest);
    return actor.run;
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

function tooLateToCancel({ runId, status }: RunState): RunFinished {
  return new RunFinished({ runId, status, action: 'cancel' });
}
