/**
 * Who looks after a run that nobody runs: every instance knows the unfinished runs of all and offers to take those
 * that wait for an instance with room, that a stopping instance has released, or whose owner is suspected to be dead.
 * Instances do not agree on who; each waits a random moment and the first append at the exact revision wins.
 */
import type { System } from '../system/system.js';
import type { RunState, UnfinishedRun } from '../run/state.js';
import { isFinished } from '../run/state.js';

/**
 * Waits before a run is offered to this instance, in milliseconds: short for the one whose turn it is, longer for the
 * others, who come in when that one does not. Random within, so that instances do not collide.
 */
const IN_TURN_MS = { from: 0, to: 150 };
const OUT_OF_TURN_MS = { from: 250, to: 500 };

export interface OrphanRecoveryOptions {
  readonly system: Pick<System, 'after' | 'random'>;
  readonly instanceId: string;
  /** Whether an instance other than this one is taken for dead. */
  readonly isSuspect: (instanceId: string) => boolean;
  /** Whether it is this instance's turn to take a run: a matter of speed, not of right. */
  readonly isInTurn: (runId: string) => boolean;
  /** The runs of this instance. */
  readonly registry: {
    /** Whether a run is run here, or about to be. */
    holds(runId: string): boolean;
    /** Queues runs that nobody runs. */
    recover(runIds: Iterable<string>): void;
    /** A queued run is somebody's. */
    leaveTo(runId: string): void;
  };
}

export class OrphanRecovery {
  readonly #options: OrphanRecoveryOptions;
  /** Owner by run. As many as are pending or active anywhere; both are bounded at each instance. */
  readonly #runs = new Map<string, string | null>();
  /** Runs about to be offered, with what cancels it. */
  readonly #offers = new Map<string, () => void>();
  /** Runs that have come to rest since the listening began; null once what was known before is known here. */
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

  /** Takes note of runs as they stood at some time since the listening began; what has been recorded since counts. */
  know(runs: Iterable<UnfinishedRun>): void {
    for (const { runId, owner } of runs) {
      if (this.#atRest?.has(runId) !== true && !this.#runs.has(runId)) this.#note(runId, owner);
    }
    this.#atRest = null;
  }

  /** Takes note of a run after an event of it has come in. */
  recorded(run: RunState): void {
    const { runId, owner } = run;
    if (isFinished(run) || (run.status === 'paused' && owner === null)) this.#leave(runId);
    else this.#note(runId, owner);
  }

  /** A run is no longer looked after, until an event of it comes in: nobody can run it. */
  giveUp(runId: string): void {
    this.#leave(runId);
  }

  /** Looks for runs whose owner has died, or has lost them by its own doing. */
  look(): void {
    for (const runId of this.#runs.keys()) if (this.#isOrphan(runId)) this.#offer(runId);
  }

  /** Offers nothing more, whatever comes in. */
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
      if (this.#isOrphan(runId)) registry.recover([runId]);
    });
    this.#offers.set(runId, cancel);
  }

  #withdraw(runId: string): void {
    this.#offers.get(runId)?.();
    this.#offers.delete(runId);
    this.#options.registry.leaveTo(runId);
  }
}
