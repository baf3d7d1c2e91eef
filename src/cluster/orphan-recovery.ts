/**
 * Recovers orphans: every instance knows the unfinished runs of all and tries to take those that are pending, that a
 * stopping instance has released, or whose owner is suspected to be dead. Instances do not agree on who takes a run: each
 * waits a random time, and the first append at the exact revision wins.
 */
import type { System } from '../system/system.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import { isAtRest } from '../run/state.js';

/**
 * Delays before this instance tries to take a run, in milliseconds: short for the one whose turn it is, longer for the
 * others, which step in if that one does not. Random within the range, so that instances do not collide.
 */
const IN_TURN_MS = { from: 0, to: 150 };
const OUT_OF_TURN_MS = { from: 250, to: 500 };

export interface OrphanRecoveryOptions {
  readonly system: Pick<System, 'after' | 'random'>;
  readonly instanceId: string;
  /** Whether an instance other than this one is suspected to be dead. */
  readonly isSuspect: (instanceId: string) => boolean;
  /** Whether it is this instance's turn to take a run: affects only the delay. */
  readonly isInTurn: (runId: string) => boolean;
  /** The runs of this instance. */
  readonly registry: {
    /** Whether a run is live here or being claimed. */
    holds(runId: string): boolean;
    /** Queues runs without a live owner. */
    recover(orphans: Iterable<Pick<UnfinishedRun, 'runId'>>): void;
    /** Removes a run from the queue: it has an owner by now. */
    leaveTo(runId: string): void;
  };
}

export class OrphanRecovery {
  readonly #options: OrphanRecoveryOptions;
  /** Owner by unfinished run. Bounded, because each instance bounds its pending and active runs. */
  readonly #runs = new Map<string, string | null>();
  /** Cancels the scheduled attempt to take a run, by run. */
  readonly #offers = new Map<string, () => void>();
  /** Runs that have finished or paused since listening began; null once `know` has been called. */
  #atRest: Set<string> | null = new Set();
  #isStopped = false;

  constructor(options: OrphanRecoveryOptions) {
    this.#options = options;
  }

  /** Whether an instance is known to own an unfinished run. */
  isOwner(instanceId: string): boolean {
    for (const owner of this.#runs.values()) if (owner === instanceId) return true;
    return false;
  }

  /** Whether a run is known to be unfinished. */
  knows(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Adds runs as known at some time since listening began; events received since then take precedence. */
  know(runs: Iterable<UnfinishedRun>): void {
    for (const { runId, owner } of runs) {
      if (this.#atRest?.has(runId) !== true && !this.#runs.has(runId)) this.#note(runId, owner);
    }
    this.#atRest = null;
  }

  /** Follows a run after one of its events has been received. */
  recorded(run: RunState): void {
    const { runId, ownership } = run;
    if (isAtRest(run)) this.#leave(runId);
    else this.#note(runId, ownership.owner);
  }

  /** Stops following a run that cannot be continued, until another of its events is received. */
  giveUp(runId: string): void {
    this.#leave(runId);
  }

  /** Checks for runs whose owner is suspected to be dead, and for own runs that were abandoned. */
  check(): void {
    for (const runId of this.#runs.keys()) if (this.#isOrphan(runId)) this.#offer(runId);
  }

  /** Recovers nothing more, whatever is received. */
  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#offers.values()) cancel();
    this.#offers.clear();
    this.#runs.clear();
  }

  #note(runId: string, owner: string | null): void {
    if (this.#isStopped) return;
    this.#runs.set(runId, owner);
    if (owner === null) this.#offer(runId);
    else this.#withdraw(runId);
  }

  #leave(runId: string): void {
    this.#runs.delete(runId);
    this.#atRest?.add(runId);
    this.#withdraw(runId);
  }

  #isOrphan(runId: string): boolean {
    const { instanceId, isSuspect, registry } = this.#options;
    const owner = this.#runs.get(runId);
    if (owner === undefined || registry.holds(runId)) return false;
    return owner === null || owner === instanceId || isSuspect(owner);
  }

  #offer(runId: string): void {
    if (this.#offers.has(runId)) return;
    const { system, registry, isInTurn } = this.#options;
    const { from, to } = isInTurn(runId) ? IN_TURN_MS : OUT_OF_TURN_MS;
    const cancel = system.after(from + system.random() * (to - from), () => {
      this.#offers.delete(runId);
      if (this.#isOrphan(runId)) registry.recover([{ runId }]);
    });
    this.#offers.set(runId, cancel);
  }

  #withdraw(runId: string): void {
    this.#offers.get(runId)?.();
    this.#offers.delete(runId);
    this.#options.registry.leaveTo(runId);
  }
}
