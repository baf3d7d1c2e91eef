/**
 * Connects this instance with the others on one log. It sends heartbeats, receives those of others, recovers orphans,
 * and abandons its own runs while the log accepts no heartbeat, because other instances may take them meanwhile.
 */
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import type { RunCorrupt } from '../run/errors.js';
import { runIdOf } from '../run/events.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import type { OrphanRecoveryOptions } from './orphan-recovery.js';
import { OrphanRecovery } from './orphan-recovery.js';
import type { ClusterSettings, FailureDetector } from './failure-detector.js';
import { LogClosed, LogReplaced, RevisionConflict } from '../eventlog/errors.js';
import type { StreamHead } from '../eventsourcing/aggregate.js';
import { appendFacts } from '../eventsourcing/aggregate.js';
import { wait } from '../system/async/deadline.js';

export interface ClusterOptions extends ClusterSettings {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  readonly failureDetector: FailureDetector;
  readonly registry: OrphanRecoveryOptions['registry'] & {
    /** Another instance has appended to a run. */
    catchUp(runId: string, seq: number): void;
    /** Stops all runs without recording anything. */
    abandon(): void;
  };
  /** Runs that cannot be continued. */
  readonly corruptRuns: { has(runId: string): boolean };
  /** The subscription to the log. */
  readonly projector: {
    /** Up to where everything is folded, or null if nothing is. */
    readonly position: Position | null;
    /** How many items it has delivered. */
    readonly received: number;
    resubscribe(): void;
  };
  /** Called once if the log was replaced by another one or an older copy. The process must then be restarted. */
  readonly onLogReplaced: (error: LogReplaced) => void;
  readonly logger: Logger;
}

/** Time between two checks for orphans, in milliseconds; shorter when heartbeats are. */
const CHECK_INTERVAL_MS = 1_000;
/** Share of `suspectAfterMs` without an acknowledged heartbeat after which an instance abandons its runs. */
const FENCED_AFTER = 2 / 3;
/** Longest heartbeat whose times still tell the difference of the clocks, in milliseconds. */
const MAX_ROUND_TRIP_MS = 1_000;
/** Difference of the clocks above which the service logs a line, in milliseconds. */
const LARGE_SKEW_MS = 2_000;

export class Cluster {
  readonly categories = ['run', 'instance'];
  readonly #options: ClusterOptions;
  readonly #orphanRecovery: OrphanRecovery;
  readonly #heartbeat: Heartbeat;
  #cancelCheck: () => void = () => undefined;
  #isListening = false;
  #isFenced = false;
  #isStopped = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#heartbeat = new Heartbeat(options);
    this.#orphanRecovery = new OrphanRecovery(options);
  }

  /** Whether this instance has abandoned its runs, or is about to. */
  get isFenced(): boolean {
    return this.#isFenced || this.#isSilent;
  }

  /** This clock minus that of the log's server, in milliseconds, or null if unknown or without a server. */
  get clockSkewMs(): number | null {
    return this.#heartbeat.clockSkewMs;
  }

  /** Whether the log has acknowledged no heartbeat for so long that other instances may take the runs soon. */
  get #isSilent(): boolean {
    const { system, suspectAfterMs } = this.#options;
    return system.monotonicMs() - this.#heartbeat.acknowledgedMs > FENCED_AFTER * suspectAfterMs;
  }

  /** Follows the runs of all instances from now on. `start` receives the unfinished runs from before. */
  listen(): void {
    this.#isListening = true;
  }

  /** Sends heartbeats and recovers orphans from now on; `known` are the unfinished runs at some time since `listen`. */
  start(known: Iterable<UnfinishedRun>): void {
    this.#orphanRecovery.addUnfinished(known);
    this.beat();
  }

  /**
   * Sends heartbeats, so that no other instance takes the runs of this one, and checks its own runs for orphans. Does
   * nothing after `stop`, which may come first if it takes long to read the unfinished runs.
   */
  beat(): void {
    if (this.#isStopped) return;
    this.#heartbeat.start();
    this.#scheduleCheck();
  }

  /** Called before the event is folded, because folding may need further reads. */
  onEventRecorded(event: RecordedEvent): void {
    const { instanceId, failureDetector, registry } = this.#options;
    const sender = heartbeatSender(event);
    if (sender !== null) failureDetector.onHeartbeat(sender);
    if (sender === instanceId) this.#heartbeat.onRecorded(event);
    const runId = event.metadata['instanceId'] === instanceId ? null : runIdOf(event.stream);
    if (runId !== null) registry.catchUp(runId, event.revision);
  }

  onRunFolded(_event: RecordedEvent, run: RunState): void {
    if (this.#follows(run)) this.#orphanRecovery.onRunFolded(run);
  }

  onRunUpdated(run: RunState): void {
    if (this.#follows(run)) this.#orphanRecovery.onRunUpdated(run);
  }

  #follows({ runId, ownership }: RunState): boolean {
    if (this.#options.corruptRuns.has(runId)) return false;
    return this.#isListening || ownership.owner === this.#options.instanceId || this.#orphanRecovery.follows(runId);
  }

  onRunCorrupt({ data: { runId } }: RunCorrupt): void {
    this.#orphanRecovery.unfollow(runId);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelCheck();
    this.#orphanRecovery.stop();
    await this.#heartbeat.stop();
  }

  #scheduleCheck(): void {
    const { system, heartbeatMs } = this.#options;
    this.#cancelCheck = system.after(Math.min(CHECK_INTERVAL_MS, heartbeatMs), () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  #check(): void {
    const { registry, failureDetector, instanceId, logger } = this.#options;
    const isSilent = this.#isSilent;
    if (isSilent && !this.#isFenced) {
      logger.error({ instanceId }, 'heartbeats: the event log accepts none; abandoning all runs until it does');
      registry.abandon();
    }
    this.#isFenced = isSilent;
    if (isSilent) return;
    this.#orphanRecovery.check();
    failureDetector.forgetSuspects((each) => this.#orphanRecovery.isOwner(each));
  }
}

// The heartbeats of this instance: appended to its own stream at intervals, each at the exact revision.

type HeartbeatOptions = Pick<
  ClusterOptions,
  'log' | 'system' | 'instanceId' | 'heartbeatMs' | 'suspectAfterMs' | 'projector' | 'onLogReplaced' | 'logger'
>;

class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #stopping = new AbortController();
  #head: StreamHead | null = null;
  #acknowledgedMs: number;
  /** How many items the subscription has delivered, and when a heartbeat first found that number. */
  #received = 0;
  #receivedMs = 0;
  #clockSkewMs: number | null = null;
  /** When the last heartbeat was sent and acknowledged, by this clock. The subscription delivers it before or after. */
  #answered: { readonly seq: number; readonly sentMs: number; readonly answeredMs: number } | null = null;
  /** The last heartbeat that the subscription delivered. */
  #delivered: RecordedEvent | null = null;
  #beating: Promise<void> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#acknowledgedMs = options.system.monotonicMs();
  }

  /** When the log last acknowledged a heartbeat, on the monotonic clock; at first, when this object was created. */
  get acknowledgedMs(): number {
    return this.#acknowledgedMs;
  }

  get clockSkewMs(): number | null {
    return this.#clockSkewMs;
  }

  start(): void {
    this.#beating = this.#beat();
  }

  /** The subscription has delivered a heartbeat of this instance. */
  onRecorded(event: RecordedEvent): void {
    this.#delivered = event;
    this.#compareClocks();
  }

  /** Resolves once no append is in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#beating;
  }

  async #beat(): Promise<void> {
    const { system, heartbeatMs, logger } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const sentMs = this.#clockMs();
        await this.#append();
        this.#acknowledgedMs = system.monotonicMs();
        this.#answered = { seq: this.#head?.seq ?? -1, sentMs, answeredMs: this.#clockMs() };
        this.#compareClocks();
        this.#checkSubscription();
      } catch (error) {
        if (error instanceof LogClosed) return;
        if (error instanceof LogReplaced) return this.#options.onLogReplaced(error);
        logger.error({ err: error }, 'heartbeats: failed to record one');
      }
      await wait(system, heartbeatMs, signal);
    }
  }

  /** @throws {LogReplaced} */
  async #append(): Promise<void> {
    const { instanceId, projector } = this.#options;
    const beat = { type: INSTANCE_BEAT, data: {} };
    const stream = instanceStream(instanceId);
    const before = projector.position;
    try {
      const after = { stream, subject: instanceId, head: this.#head, facts: [beat] };
      const { recorded, position } = await appendFacts(this.#options, after, this.#stopping.signal);
      this.#head = recorded.at(-1) ?? this.#head;
      if (before !== null && position <= before)
        throw new LogReplaced('it recorded a heartbeat before events that this instance has seen');
    } catch (error) {
      // Only this instance appends to the stream, and a repeated append has its first result.
      if (error instanceof RevisionConflict) throw new LogReplaced(`it lacks the heartbeats of "${stream}"`);
      throw error;
    }
  }

  /** Compares the clocks by the last heartbeat, which the server recorded between its sending and its answer. */
  #compareClocks(): void {
    if (this.#answered === null || this.#answered.seq !== this.#delivered?.revision) return;
    const { logger, instanceId } = this.#options;
    const { sentMs, answeredMs } = this.#answered;
    const { recordedAtMs } = this.#delivered;
    if (recordedAtMs === undefined || answeredMs - sentMs > MAX_ROUND_TRIP_MS) return;
    const wasLarge = Math.abs(this.#clockSkewMs ?? 0) > LARGE_SKEW_MS;
    this.#clockSkewMs = (sentMs + answeredMs) / 2 - recordedAtMs;
    if (wasLarge || Math.abs(this.#clockSkewMs) <= LARGE_SKEW_MS) return;
    logger.info(
      { instanceId, skewMs: Math.round(this.#clockSkewMs) },
      "clock: differs from that of the event log's server; synchronise both, for instance by NTP",
    );
  }

  #clockMs(): number {
    return Date.parse(this.#options.system.now());
  }

  /**
   * Opens the subscription again if it has delivered nothing for `suspectAfterMs`, although the log has acknowledged
   * heartbeats, which it should deliver.
   */
  #checkSubscription(): void {
    const { projector, logger, instanceId, suspectAfterMs } = this.#options;
    const isSilent = projector.received === this.#received;
    if (isSilent && this.#acknowledgedMs - this.#receivedMs <= suspectAfterMs) return;
    if (isSilent) {
      logger.info(
        { instanceId },
        'subscription: delivers nothing although the event log accepts heartbeats; reopening it',
      );
      projector.resubscribe();
    }
    this.#received = projector.received;
    this.#receivedMs = this.#acknowledgedMs;
  }
}

const INSTANCE_BEAT = 'InstanceBeat';

/** Stream of an instance: its heartbeats, of which the log keeps the last. */
export function instanceStream(instanceId: string): string {
  return `instance-${instanceId}`;
}

/** The instance that sent a heartbeat, or null if the event is no heartbeat. */
function heartbeatSender({ stream, type }: RecordedEvent): string | null {
  const prefix = instanceStream('');
  return type === INSTANCE_BEAT && stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}
