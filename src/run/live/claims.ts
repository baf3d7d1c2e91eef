/**
 * The appends under way to runs that are not live here. An append beside a claim may come between the claim and its
 * acknowledgement; the new actor then reads the log before it acts.
 */
import { RefCount } from '../../system/async/ref-count.js';

export class Claims {
  /** Work that may claim a run, until the claim is adopted. */
  readonly #claiming = new RefCount();
  /** Appends that claim nothing: a cancellation, a vote. */
  readonly #appending = new RefCount();
  /** Runs being claimed whose stream got another append meanwhile. */
  readonly #overtaken = new Set<string>();

  /** How many claims of a run are under way. */
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

  /** Notes that an event was recorded beside a claim that is under way. */
  overtake(runId: string): void {
    if (this.#claiming.of(runId) > 0) this.#overtaken.add(runId);
  }

  /** Resolves once no append of this instance beside a claim is under way, with whether one was. */
  appendsSettled(runId: string): Promise<boolean> {
    return this.#appending.none(runId);
  }

  /** Whether an event came in since the claim began. Forgets it. */
  takeOvertaken(runId: string): boolean {
    return this.#overtaken.delete(runId);
  }
}
