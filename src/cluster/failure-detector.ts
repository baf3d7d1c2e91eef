/**
 * Suspects an instance to be dead if it has received no heartbeat of it for too long by its own clock. It suspects
 * others only while it receives its own heartbeats, because these show that its subscription works and is not behind.
 * It may be wrong: a suspicion only allows an attempt to take a run; the revision of the append decides.
 */

import type { System } from '../system/system.js';

export interface ClusterSettings {
  /** Time between two heartbeats, in milliseconds. */
  readonly heartbeatMs: number;
  /** Silence after which an instance is suspected to be dead, in milliseconds. */
  readonly suspectAfterMs: number;
}

export interface FailureDetectorOptions extends ClusterSettings {
  /** This instance's own id. */
  readonly instanceId: string;
  /** Earlier instances on the same data directory, certainly dead. */
  readonly predecessors: readonly string[];
  readonly system: Pick<System, 'monotonicMs' | 'sha256'>;
}

/**
 * Number of own heartbeats that may be missing. If more are missing, the subscription is behind, so the silence of
 * others proves nothing.
 */
const BEATS_MISSED = 2;

export class FailureDetector {
  readonly #options: FailureDetectorOptions;
  readonly #predecessors: ReadonlySet<string>;
  /** When the last heartbeat of each instance was received, on this instance's monotonic clock. */
  readonly #lastHeartbeatMs = new Map<string, number>();
  /** What else needs instances, besides the caller of `forgetSuspects`. */
  readonly #needs: ((instanceId: string) => boolean)[] = [];
  /** True until the first own heartbeat is received, and while own heartbeats are missing. */
  #missesOwnHeartbeats = true;

  constructor(options: FailureDetectorOptions) {
    this.#options = options;
    this.#predecessors = new Set(options.predecessors);
  }

  onHeartbeat(instanceId: string): void {
    const nowMs = this.#nowMs();
    if (this.#missesOwnHeartbeats && instanceId === this.#options.instanceId) this.#restartTimes(nowMs);
    this.#lastHeartbeatMs.set(instanceId, nowMs);
  }

  /**
   * Whether an instance other than this one has been silent for too long. If it never received a heartbeat of the
   * instance, the time counts from the first call.
   */
  isSuspect(instanceId: string): boolean {
    const { instanceId: ownId, suspectAfterMs } = this.#options;
    if (instanceId === ownId) return false;
    if (this.#predecessors.has(instanceId)) return true;
    const nowMs = this.#nowMs();
    if (!this.#receivesOwnHeartbeats(nowMs)) this.#missesOwnHeartbeats = true;
    if (this.#missesOwnHeartbeats) return false;
    const lastMs = this.#lastHeartbeatMs.get(instanceId);
    if (lastMs === undefined) this.#lastHeartbeatMs.set(instanceId, nowMs);
    return lastMs !== undefined && nowMs - lastMs > suspectAfterMs;
  }

  /**
   * Whether it is this instance's turn to take a run, by rendezvous hashing: instances that agree on who is alive rank
   * themselves the same for a run.
   */
  isInTurn(runId: string): boolean {
    const { instanceId: ownId, system } = this.#options;
    const rankOf = (instanceId: string): string => system.sha256(`${runId} ${instanceId}`);
    const own = rankOf(ownId);
    const others = [...this.#lastHeartbeatMs.keys()].filter((each) => each !== ownId && !this.isSuspect(each));
    return others.every((each) => rankOf(each) > own);
  }

  /** Keeps suspects that are needed. A forgotten instance is suspected again only after another `suspectAfterMs`. */
  remember(isNeeded: (instanceId: string) => boolean): void {
    this.#needs.push(isNeeded);
  }

  /** Forgets suspected instances that are no longer needed. */
  forgetSuspects(isNeeded: (instanceId: string) => boolean): void {
    const needs = [isNeeded, ...this.#needs];
    for (const instanceId of this.#lastHeartbeatMs.keys()) {
      if (this.isSuspect(instanceId) && !needs.some((each) => each(instanceId)))
        this.#lastHeartbeatMs.delete(instanceId);
    }
  }

  /** Whether own heartbeats come back from the log: the subscription works and is not behind. */
  #receivesOwnHeartbeats(nowMs: number): boolean {
    const { instanceId, heartbeatMs } = this.#options;
    const lastMs = this.#lastHeartbeatMs.get(instanceId);
    return lastMs !== undefined && nowMs - lastMs <= BEATS_MISSED * heartbeatMs;
  }

  /** Restarts the time of every instance: they could not be heard while the subscription delivered nothing. */
  #restartTimes(nowMs: number): void {
    this.#missesOwnHeartbeats = false;
    for (const instanceId of this.#lastHeartbeatMs.keys()) this.#lastHeartbeatMs.set(instanceId, nowMs);
  }

  #nowMs(): number {
    return this.#options.system.monotonicMs();
  }
}
