/**
 * This instance among others on one log: it beats, listens for the beats of others, takes up runs that nobody runs,
 * and lets its own go while it cannot reach the log, for by then others may have taken them.
 */
import type { System } from '../system/system.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import { OrphanRecovery } from './orphan-recovery.js';
import type { OrphanRecoveryOptions } from './orphan-recovery.js';
import { beatOf } from './heartbeat.js';
import { Heartbeat } from './heartbeat.js';
import { FailureDetector } from './failure-detector.js';

export interface ClusterSettings {
  /** Time between two beats, in milliseconds. */
  readonly heartbeatMs: number;
  /** Silence after which an instance is taken for dead, in milliseconds. */
  readonly suspectAfterMs: number;
}

export interface ClusterOptions extends ClusterSettings {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  /** The instances that ran in this one's place, dead for sure. */
  readonly predecessors: readonly string[];
  readonly registry: OrphanRecoveryOptions['registry'] & {
    /** Another instance has appended to a run. */
    noticed(runId: string, seq: number): void;
    /** Lets all runs go without a word to the log. */
    abandon(): void;
  };
  /** Told when this instance lets its runs go because the log takes no beat of it. */
  readonly onFenced: () => void;
  readonly onFault: (error: unknown) => void;
}

/** Time between two looks for the dead, in milliseconds; shorter where beats are. */
const LOOK_MS = 1_000;
/** Share of the others' patience after which an instance that cannot beat lets its runs go. */
const FENCED_AFTER = 2 / 3;

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #membership: FailureDetector;
  readonly #custodian: OrphanRecovery;
  readonly #heartbeat: Heartbeat;
  #cancelLook: () => void = () => undefined;
  #isListening = false;
  #isFenced = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#membership = new FailureDetector(options);
    this.#heartbeat = new Heartbeat(options);
    this.#custodian = new OrphanRecovery({
      ...options,
      isSuspect: (instanceId) => this.isSuspect(instanceId),
      isInTurn: (runId) => this.#isInTurn(runId),
    });
  }

  /** Whether this instance has let its runs go. */
  get isFenced(): boolean {
    return this.#isFenced;
  }

  /** Whether an instance other than this one is taken for dead. */
  isSuspect(instanceId: string): boolean {
    return this.#membership.isSuspect(instanceId, this.#options.system.monotonicMs());
  }

  /** Takes note of the runs of all from now on; those of before are told with the start. */
  listen(): void {
    this.#isListening = true;
  }

  /** Beats from now on, and looks after the runs of all, those known at some time since the listening began among them. */
  start(known: Iterable<UnfinishedRun>): void {
    this.#custodian.know(known);
    this.beat();
  }

  /** Beats, so that nobody takes the runs of this instance; it takes up none but its own. */
  beat(): void {
    this.#heartbeat.start();
    this.#lookSoon();
  }

  /** An event has come in from the log, with the run it made when it is one of a run. */
  recorded(event: RecordedEvent, run: RunState | null): void {
    const { system, instanceId, registry } = this.#options;
    const beat = beatOf(event);
    if (beat !== null) this.#membership.heard(beat, system.monotonicMs());
    if (run === null) return;
    if (event.metadata['instanceId'] !== instanceId) registry.noticed(run.runId, event.revision);
    const isOwn = run.owner === instanceId || this.#custodian.knows(run.runId);
    if (isOwn || this.#isListening) this.#custodian.recorded(run);
  }

  /** Nobody can run a run: its record is damaged. */
  giveUp(runId: string): void {
    this.#custodian.giveUp(runId);
  }

  async stop(): Promise<void> {
    this.#cancelLook();
    this.#custodian.stop();
    await this.#heartbeat.stop();
  }

  /** Each run has an order of its own of the instances that live; all of them know the same one, more or less. */
  #isInTurn(runId: string): boolean {
    const { system, instanceId } = this.#options;
    const place = (each: string): string => system.sha256(`${runId} ${each}`);
    const own = place(instanceId);
    return this.#membership.others(system.monotonicMs()).every((each) => place(each) > own);
  }

  #lookSoon(): void {
    const { system, heartbeatMs } = this.#options;
    this.#cancelLook = system.after(Math.min(LOOK_MS, heartbeatMs), () => {
      this.#look();
      this.#lookSoon();
    });
  }

  #look(): void {
    const { system, suspectAfterMs, registry, onFenced } = this.#options;
    const nowMs = system.monotonicMs();
    const isSilent = nowMs - this.#heartbeat.acknowledgedMs > FENCED_AFTER * suspectAfterMs;
    if (isSilent && !this.#isFenced) {
      onFenced();
      registry.abandon();
    }
    this.#isFenced = isSilent;
    if (isSilent) return;
    this.#custodian.look();
    this.#membership.forget((instanceId) => this.#custodian.isOwner(instanceId), nowMs);
  }
}
