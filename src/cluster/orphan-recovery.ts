/**
 * Recovers orphans. Every instance knows the unfinished runs of all instances. It tries to take a run that is pending,
 * that a stopping instance has released, or whose owner is suspected to be dead. Instances do not agree on which of
 * them takes a run: each waits a random time, and the first append at the exact revision wins.
 *
 * It receives the states of runs from the subscription to the log, and earlier those that this instance appends or
 * reads. Of two states of a run it keeps the one with the higher revision.
 */
import type { System } from '../system/system.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import { isAtRest } from '../run/state.js';
import { BoundedMap } from '../system/bounded-map.js';

/**
 * Delays before an instance tries to take a run, in milliseconds: short for the instance whose turn it is, longer for the
 * others, which take the run if that one does not. Random within the range, so that instances do not collide.
 */
const IN_TURN_MS = { from: 0, to: 150 };
const OUT_OF_TURN_MS = { from: 250, to: 500 };

/** Most runs at rest whose revision is remembered for a lagging subscription. A run beyond that may be read again. */
const MAX_AT_REST = 20_000;

export interface OrphanRecoveryOptions {
  readonly system: Pick<System, 'after' | 'random'>;
  readonly instanceId: string;
  readonly failureDetector: {
    /** Whether an instance other than this one is suspected to be dead. */
    isSuspect(instanceId: string): boolean;
    /** Whether it is this instance's turn to take a run. This affects only the delay. */
    isInTurn(runId: string): boolean;
  };
  /** The runs of this instance. */
  readonly registry: {
    /** Whether a run is live here, being claimed or queued. */
    holds(runId: string): boolean;
    /** Queues runs without a live owner. */
    recover(orphans: Iterable<UnfinishedRun>): void;
    /** Removes a run from the queue: it has an owner. */
    dequeue(runId: string): void;
  };
}

export class OrphanRecovery {
  readonly #options: OrphanRecoveryOptions;
  /** The unfinished runs. Bounded, because each instance bounds its pending and active runs. */
  readonly #runs = new Map<string, UnfinishedRun>();
  /** Revision at which this instance saw a run at rest, by run: the subscription may still deliver events before it. */
  readonly #seenAtRest = new BoundedMap<string, number>(MAX_AT_REST);
  /** Cancels the scheduled attempt to take a run, by run. */
  readonly #takes = new Map<string, () => void>();
  /** Runs that have finished or paused since listening began; null once `know` has been called. */
  #atRest: Set<string> | null = new Set();
  #isStopped = false;

  constructor(options: OrphanRecoveryOptions) {
    this.#options = options;
  }

  /** Whether an instance is known to own an unfinished run. */
  isOwner(instanceId: string): boolean {
    for (const { owner } of this.#runs.values()) if (owner === instanceId) return true;
    return false;
  }

  /** Whether a run is known to be unfinished. */
  follows(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Adds runs as known at some time since listening began; events received since then take precedence. */
  addUnfinished(runs: Iterable<UnfinishedRun>): void {
    for (const run of runs) {
      if (this.#atRest?.has(run.runId) !== true && !this.#runs.has(run.runId)) this.#setUnfinished(run);
    }
    this.#atRest = null;
  }

  /** Follows a run after the subscription has delivered one of its events. Ignores events older than the known state. */
  onRunFolded(run: RunState): void {
    if (this.#isOlder(run)) return;
    this.#seenAtRest.delete(run.runId);
    this.#follow(run);
  }

  /** Follows a run that this instance has appended to or read; the subscription may deliver its last event later. */
  onRunUpdated(run: RunState): void {
    if (this.#isOlder(run)) return;
    if (isAtRest(run)) this.#seenAtRest.set(run.runId, run.head.seq);
    this.#follow(run);
  }

  /** Checks for runs whose owner is suspected to be dead, and for own runs that were abandoned. */
  check(): void {
    for (const runId of this.#runs.keys()) if (this.#takeable(runId) !== null) this.#scheduleTake(runId);
  }

  /** Recovers no further runs. */
  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#takes.values()) cancel();
    this.#takes.clear();
    this.#runs.clear();
    this.#seenAtRest.clear();
  }

  #isOlder({ runId, head }: RunState): boolean {
    const known = this.#runs.get(runId)?.seq ?? this.#seenAtRest.get(runId);
    return known !== undefined && head.seq < known;
  }

  #follow(run: RunState): void {
    const { runId, ownership, head } = run;
    if (isAtRest(run)) this.unfollow(runId);
    else this.#setUnfinished({ runId, owner: ownership.owner, seq: head.seq });
  }

  #setUnfinished(run: UnfinishedRun): void {
    if (this.#isStopped) return;
    this.#runs.set(run.runId, run);
    if (run.owner === null) this.#scheduleTake(run.runId);
    else this.#cancelTake(run.runId);
  }

  /** Stops following a run that is at rest or cannot be continued, until another of its events is received. */
  unfollow(runId: string): void {
    this.#runs.delete(runId);
    this.#atRest?.add(runId);
    this.#cancelTake(runId);
  }

  /** The run, or null if this instance must not try to take it. */
  #takeable(runId: string): UnfinishedRun | null {
    const { instanceId, failureDetector, registry } = this.#options;
    const run = this.#runs.get(runId);
    if (run === undefined || registry.holds(runId)) return null;
    return run.owner === null || run.owner === instanceId || failureDetector.isSuspect(run.owner) ? run : null;
  }

  #scheduleTake(runId: string): void {
    if (this.#takes.has(runId)) return;
    const { system, registry, failureDetector } = this.#options;
    const { from, to } = failureDetector.isInTurn(runId) ? IN_TURN_MS : OUT_OF_TURN_MS;
    const cancel = system.after(from + system.random() * (to - from), () => {
      this.#takes.delete(runId);
      const orphan = this.#takeable(runId);
      if (orphan !== null) registry.recover([orphan]);
    });
    this.#takes.set(runId, cancel);
  }

  #cancelTake(runId: string): void {
    this.#takes.get(runId)?.();
    this.#takes.delete(runId);
    this.#options.registry.dequeue(runId);
  }
}
