/**
 * The appends in flight to runs that are not live here. If another event is recorded after a claim and before the log
 * acknowledges the claim, the new actor must read the log before it acts.
 */

/** What is in flight to one run. */
interface InFlight {
  /** Work that may claim the run, until the claim is adopted. */
  claims: number;
  /** Appends that claim nothing: a cancellation, a vote. */
  others: number;
  /** Whether another event was recorded since the first claim began. */
  isOvertaken: boolean;
  /** Called once no append without a claim is in flight. */
  readonly waiting: (() => void)[];
}

/** Counts the appends in flight by run. */
export class Claims {
  readonly #byRun = new Map<string, InFlight>();

  /** How many claims of a run are in flight. */
  count(runId: string): number {
    return this.#byRun.get(runId)?.claims ?? 0;
  }

  /** Counts a claim of a run, or an append to it that claims nothing, until `end`. */
  begin(runId: string, kind: 'claims' | 'others'): void {
    let inFlight = this.#byRun.get(runId);
    if (inFlight === undefined) {
      inFlight = { claims: 0, others: 0, isOvertaken: false, waiting: [] };
      this.#byRun.set(runId, inFlight);
    }
    inFlight[kind] += 1;
  }

  end(runId: string, kind: 'claims' | 'others'): void {
    const inFlight = this.#byRun.get(runId);
    if (inFlight === undefined) return;
    inFlight[kind] -= 1;
    if (inFlight.claims === 0) inFlight.isOvertaken = false;
    if (inFlight.others === 0) for (const resolve of inFlight.waiting.splice(0)) resolve();
    if (inFlight.claims + inFlight.others === 0) this.#byRun.delete(runId);
  }

  /** Remembers that another event was recorded, if a claim of the run is in flight. */
  markOvertaken(runId: string): void {
    const inFlight = this.#byRun.get(runId);
    if (inFlight !== undefined && inFlight.claims > 0) inFlight.isOvertaken = true;
  }

  /** Resolves when this instance has no append without a claim in flight to the run, with whether it had to wait. */
  async othersEnded(runId: string): Promise<boolean> {
    const inFlight = this.#byRun.get(runId);
    if (inFlight === undefined || inFlight.others === 0) return false;
    await new Promise<void>((resolve) => inFlight.waiting.push(resolve));
    return true;
  }

  /** Returns whether another event was recorded since the claim began, and forgets it. */
  takeOvertaken(runId: string): boolean {
    const inFlight = this.#byRun.get(runId);
    const isOvertaken = inFlight?.isOvertaken === true;
    if (inFlight !== undefined) inFlight.isOvertaken = false;
    return isOvertaken;
  }
}
