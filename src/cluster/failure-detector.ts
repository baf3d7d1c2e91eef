/**
 * Which instances are alive, by this instance's own clock since it last received a heartbeat of each. It suspects others
 * only while it receives its own heartbeats, because then its subscription works and is not behind. It may be wrong: a
 * suspicion only allows an attempt to take a run over, the revision of the append decides.
 */

export interface FailureDetectorOptions {
  /** This instance's own id. */
  readonly instanceId: string;
  readonly heartbeatMs: number;
  /** Silence after which an instance is suspected to be dead, in milliseconds. */
  readonly suspectAfterMs: number;
  /** Earlier instances on the same data directory, certainly dead. */
  readonly predecessors: readonly string[];
}

/** Own heartbeats that may be missed before the silence of others means nothing. */
const BEATS_MISSED = 2;

export class FailureDetector {
  readonly #options: FailureDetectorOptions;
  readonly #predecessors: ReadonlySet<string>;
  /** When each instance was last heard of, on the receiver's monotonic clock. */
  readonly #heardMs = new Map<string, number>();
  /** True until the first own heartbeat is received, and while own heartbeats are missing. */
  #isDeaf = true;

  constructor(options: FailureDetectorOptions) {
    this.#options = options;
    this.#predecessors = new Set(options.predecessors);
  }

  /** A heartbeat has been received. */
  heard(instanceId: string, nowMs: number): void {
    const { instanceId: ownId } = this.#options;
    if (this.#isDeaf && instanceId === ownId) this.#hearAgain(nowMs);
    this.#heardMs.set(instanceId, nowMs);
  }

  /** Whether own heartbeats come back from the log: the subscription works and is not behind. */
  hearsItself(nowMs: number): boolean {
    const { instanceId, heartbeatMs } = this.#options;
    const lastMs = this.#heardMs.get(instanceId);
    return lastMs !== undefined && nowMs - lastMs <= BEATS_MISSED * heartbeatMs;
  }

  /**
   * Whether an instance has been silent for too long. For one never heard of, the time counts from the first
   * call.
   */
  isSuspect(instanceId: string, nowMs: number): boolean {
    const { instanceId: ownId, suspectAfterMs } = this.#options;
    if (instanceId === ownId) return false;
    if (this.#predecessors.has(instanceId)) return true;
    if (!this.hearsItself(nowMs)) this.#isDeaf = true;
    if (this.#isDeaf) return false;
    const lastMs = this.#heardMs.get(instanceId);
    if (lastMs === undefined) this.#heardMs.set(instanceId, nowMs);
    return lastMs !== undefined && nowMs - lastMs > suspectAfterMs;
  }

  /** The other instances that were heard of and are not suspected. */
  others(nowMs: number): readonly string[] {
    const { instanceId: ownId } = this.#options;
    return [...this.#heardMs.keys()].filter((each) => each !== ownId && !this.isSuspect(each, nowMs));
  }

  /** Forgets suspected instances that are no longer needed. */
  forget(isNeeded: (instanceId: string) => boolean, nowMs: number): void {
    for (const instanceId of this.#heardMs.keys()) {
      if (this.isSuspect(instanceId, nowMs) && !isNeeded(instanceId)) this.#heardMs.delete(instanceId);
    }
  }

  /** Restarts every instance's time: silence while nothing was received does not count. */
  #hearAgain(nowMs: number): void {
    this.#isDeaf = false;
    for (const instanceId of this.#heardMs.keys()) this.#heardMs.set(instanceId, nowMs);
  }
}
