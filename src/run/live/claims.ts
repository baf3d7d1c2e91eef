/**
 * The appends in flight to runs that are not live here. If another event is recorded after a claim and before the log
 * acknowledges the claim, the new actor must read the log before it acts.
 */
import { RefCount } from '../../system/async/ref-count.js';

export class Claims {
  /** Work in progress that may claim a run, until the claim is adopted. */
  readonly #claiming = new RefCount();
  /** Appends in flight that claim nothing: a cancellation, a vote. */
  readonly #appending = new RefCount();
  /** Runs being claimed whose stream has got another event meanwhile. */
  readonly #overtaken = new Set<string>();

  /** How many claims of a run are in flight. */
  count(runId: string): number {
    return this.#claiming.of(runId);
  }

  /** Counts a claim of a run while it lasts. */
  async during<T>(runId: string, claim: () => Promise<T>): Promise<T> {
    try {
      return await this.#claiming.during(runId, claim);
    } finally {
      if (this.#claiming.of(runId) === 0) this.#overtaken.delete(runId);
    }
  }

  /** Counts an append that claims nothing while it lasts. */
  duringAppend<T>(runId: string, append: () => Promise<T>): Promise<T> {
    return this.#appending.during(runId, append);
  }

  /** Remembers that another event was recorded, if a claim of the run is in flight. */
  markOvertaken(runId: string): void {
    if (this.#claiming.of(runId) > 0) this.#overtaken.add(runId);
  }

  /** Resolves when this instance has no append without a claim in flight to the run, with whether it had to wait. */
  appendsSettled(runId: string): Promise<boolean> {
    return this.#appending.untilZero(runId);
  }

  /** Returns whether another event was recorded since the claim began, and forgets it. */
  takeOvertaken(runId: string): boolean {
    return this.#overtaken.delete(runId);
  }
}
