/**
 * Who is alive, as far as this instance can tell: by its own clock since it last heard of each, and only while it
 * hears itself, for then its subscription works and is not behind. It may be wrong at any time: a suspicion only
 * allows the attempt to take a run over, the revision decides.
 */

export interface FailureDetectorOptions {
  /** This instance's own id. */
  readonly instanceId: string;
  readonly heartbeatMs: number;
  /** Silence after which an instance is taken for dead, in milliseconds. */
  readonly suspectAfterMs: number;
  /** The instances that ran in this one's place, dead for sure. */
  readonly predecessors: readonly string[];
}

/** Own beats that may be missed before what is not heard of others means nothing. */
const BEATS_MISSED = 2;

export class FailureDetector {
  readonly #options: FailureDetectorOptions;
  readonly #predecessors: ReadonlySet<string>;
  /** When each instance was last heard of, on the receiver's monotonic clock. */
  readonly #heardMs = new Map<string, number>();
  /** Nothing is known before the first own beat has come back. */
  #isDeaf = true;

  constructor(options: FailureDetectorOptions) {
    this.#options = options;
    this.#predecessors = new Set(options.predecessors);
  }

  /** A beat has come in. */
  heard(instanceId: string, nowMs: number): void {
    const { instanceId: ownId } = this.#options;
    if (this.#isDeaf && instanceId === ownId) this.#hearAgain(nowMs);
    this.#heardMs.set(instanceId, nowMs);
  }

  /**
   * Whether an instance has been silent for too long. One that was never heard of has its time from the first time it
   * is asked for.
   */
  isSuspect(instanceId: string, nowMs: number): boolean {
    const { instanceId: ownId, heartbeatMs, suspectAfterMs } = this.#options;
    if (instanceId === ownId) return false;
    if (this.#predecessors.has(instanceId)) return true;
    if (nowMs - (this.#heardMs.get(ownId) ?? Number.NEGATIVE_INFINITY) > BEATS_MISSED * heartbeatMs)
      this.#isDeaf = true;
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

  /** Forgets the instances that are long dead and that nobody needs to ask for. */
  forget(isNeeded: (instanceId: string) => boolean, nowMs: number): void {
    for (const instanceId of this.#heardMs.keys()) {
      if (this.isSuspect(instanceId, nowMs) && !isNeeded(instanceId)) this.#heardMs.delete(instanceId);
    }
  }

  /** What was missed while nothing was heard counts against nobody. */
  #hearAgain(nowMs: number): void {
    this.#isDeaf = false;
    for (const instanceId of this.#heardMs.keys()) this.#heardMs.set(instanceId, nowMs);
  }
}
