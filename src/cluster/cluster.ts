/**
 * This instance among others on one log: it sends heartbeats, listens for those of others, recovers orphans, and abandons
 * its own runs while it cannot reach the log, because others may have taken them by then.
 */
import type { System } from '../system/system.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { runIdOf } from '../run/events.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import type { OrphanRecoveryOptions } from './orphan-recovery.js';
import { OrphanRecovery } from './orphan-recovery.js';
import { FailureDetector } from './failure-detector.js';
import { LogClosed } from '../eventlog/errors.js';
import type { StreamHead } from '../eventsourcing/handle-command.js';
import { appendFacts } from '../eventsourcing/handle-command.js';
import { wait } from '../system/async/deadline.js';

export interface ClusterSettings {
  /** Time between two beats, in milliseconds. */
  readonly heartbeatMs: number;
  /** Silence after which an instance is suspected to be dead, in milliseconds. */
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
    onEventRecorded(runId: string, seq: number): void;
    /** Stops all runs without recording anything. */
    abandon(): void;
  };
  /** Called when this instance abandons its runs because the log takes no heartbeat of it. */
  readonly onFenced: () => void;
  readonly onFault: (error: unknown) => void;
}

/** Time between two checks for orphans, in milliseconds; shorter when heartbeats are. */
const CHECK_INTERVAL_MS = 1_000;
/** Share of `suspectAfterMs` without an acknowledged heartbeat after which an instance abandons its runs. */
const FENCED_AFTER = 2 / 3;

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #failureDetector: FailureDetector;
  readonly #orphanRecovery: OrphanRecovery;
  readonly #heartbeat: Heartbeat;
  #cancelCheck: () => void = () => undefined;
  #isListening = false;
  #isFenced = false;
  #isStopped = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#failureDetector = new FailureDetector(options);
    this.#heartbeat = new Heartbeat(options);
    this.#orphanRecovery = new OrphanRecovery({
      ...options,
      isSuspect: (instanceId) => this.isSuspect(instanceId),
      isInTurn: (runId) => this.#isInTurn(runId),
    });
  }

  /** Whether this instance has abandoned its runs. */
  get isFenced(): boolean {
    return this.#isFenced;
  }

  /** Whether an instance other than this one is suspected to be dead. */
  isSuspect(instanceId: string): boolean {
    return this.#failureDetector.isSuspect(instanceId, this.#options.system.monotonicMs());
  }

  /** Follows the runs of all instances from now on; earlier ones are given to `start`. */
  listen(): void {
    this.#isListening = true;
  }

  /** Sends heartbeats and recovers orphans from now on; `known` are the unfinished runs at some time since `listen`. */
  start(known: Iterable<UnfinishedRun>): void {
    this.#orphanRecovery.know(known);
    this.beat();
  }

  /**
   * Sends heartbeats, so that nobody takes the runs of this instance, and checks for orphans among its own; does nothing
   * once stopped, which may come first where the runs to start with take long to read.
   */
  beat(): void {
    if (this.#isStopped) return;
    this.#heartbeat.start();
    this.#scheduleCheck();
  }

  /** An event has come in from the log: known before it is folded, for which more may have to be read. */
  arrived(event: RecordedEvent): void {
    const { system, instanceId, registry } = this.#options;
    const beat = beatOf(event);
    if (beat !== null) this.#failureDetector.heard(beat, system.monotonicMs());
    const runId = event.metadata['instanceId'] === instanceId ? null : runIdOf(event.stream);
    if (runId !== null) registry.onEventRecorded(runId, event.revision);
  }

  /** The feed has delivered an event of a run, which is folded up to there. */
  recorded(run: RunState): void {
    if (this.#follows(run)) this.#orphanRecovery.recorded(run);
  }

  /** This instance has appended to a run or read it, perhaps before the feed delivers that. */
  learned(run: RunState): void {
    if (this.#follows(run)) this.#orphanRecovery.learned(run);
  }

  #follows({ runId, ownership }: RunState): boolean {
    return this.#isListening || ownership.owner === this.#options.instanceId || this.#orphanRecovery.knows(runId);
  }

  /** A run cannot be continued: its record is corrupt. */
  giveUp(runId: string): void {
    this.#orphanRecovery.giveUp(runId);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelCheck();
    this.#orphanRecovery.stop();
    await this.#heartbeat.stop();
  }

  /** Rendezvous hashing: instances that agree on who is alive rank themselves the same for a given run. */
  #isInTurn(runId: string): boolean {
    const { system, instanceId } = this.#options;
    const place = (each: string): string => system.sha256(`${runId} ${each}`);
    const own = place(instanceId);
    return this.#failureDetector.others(system.monotonicMs()).every((each) => place(each) > own);
  }

  #scheduleCheck(): void {
    const { system, heartbeatMs } = this.#options;
    this.#cancelCheck = system.after(Math.min(CHECK_INTERVAL_MS, heartbeatMs), () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  #check(): void {
    const { system, suspectAfterMs, registry, onFenced } = this.#options;
    const nowMs = system.monotonicMs();
    const isSilent = nowMs - this.#heartbeat.acknowledgedMs > FENCED_AFTER * suspectAfterMs;
    if (isSilent && !this.#isFenced) {
      onFenced();
      registry.abandon();
    }
    this.#isFenced = isSilent;
    if (isSilent) return;
    this.#orphanRecovery.check();
    this.#failureDetector.forget((instanceId) => this.#orphanRecovery.isOwner(instanceId), nowMs);
  }
}

// The heartbeats of this instance: appended to its own stream at intervals, each at the exact revision.

export interface HeartbeatOptions {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  readonly heartbeatMs: number;
  readonly onFault: (error: unknown) => void;
}

class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #stopping = new AbortController();
  #head: StreamHead | null = null;
  #acknowledgedMs: number;
  #beating: Promise<void> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#acknowledgedMs = options.system.monotonicMs();
  }

  /** When the log last acknowledged a heartbeat, on the monotonic clock; before the first, when this was created. */
  get acknowledgedMs(): number {
    return this.#acknowledgedMs;
  }

  start(): void {
    this.#beating = this.#beat();
  }

  /** Resolves once no append is in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#beating;
  }

  async #beat(): Promise<void> {
    const { system, heartbeatMs, onFault } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#append();
        this.#acknowledgedMs = system.monotonicMs();
      } catch (error) {
        if (error instanceof LogClosed) return;
        onFault(error);
      }
      await wait(system, heartbeatMs, signal);
    }
  }

  async #append(): Promise<void> {
    const { instanceId } = this.#options;
    const beat = { type: INSTANCE_BEAT, data: {} };
    const after = { stream: instanceStream(instanceId), subject: instanceId, head: this.#head, facts: [beat] };
    const { recorded } = await appendFacts(this.#options, after, this.#stopping.signal);
    this.#head = recorded.at(-1) ?? this.#head;
  }
}

const INSTANCE_BEAT = 'InstanceBeat';

/** Stream of an instance: its heartbeats, of which the log keeps the last. */
function instanceStream(instanceId: string): string {
  return `instance-${instanceId}`;
}

/** The instance whose heartbeat an event is; null when it is none. */
function beatOf({ stream, type }: RecordedEvent): string | null {
  const prefix = instanceStream('');
  return type === INSTANCE_BEAT && stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}
