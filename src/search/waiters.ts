/** Callers that wait until a condition holds. */
import { ServiceStopping } from '../errors.js';
import { orAborted } from '../system/async/deadline.js';

interface Waiter {
  readonly isMet: () => boolean;
  resolve: () => void;
  reject: (error: Error) => void;
}

export class Waiters {
  readonly #waiting = new Set<Waiter>();
  #isEnded = false;

  /**
   * Resolves once a condition is met, which is evaluated now and at each `check`.
   *
   * @throws {ServiceStopping} if the waiting was ended before; or the signal's reason
   */
  async until(isMet: () => boolean, signal?: AbortSignal): Promise<void> {
    if (isMet()) return;
    if (this.#isEnded) throw new ServiceStopping();
    const waiter: Waiter = { isMet, resolve: () => undefined, reject: () => undefined };
    const met = new Promise<void>((resolve, reject) => Object.assign(waiter, { resolve, reject }));
    this.#waiting.add(waiter);
    try {
      await (signal === undefined ? met : orAborted(met, signal));
    } finally {
      this.#waiting.delete(waiter);
    }
  }

  check(): void {
    for (const { isMet, resolve } of this.#waiting) if (isMet()) resolve();
  }

  /** Rejects all waiting callers. */
  end(): void {
    this.#isEnded = true;
    for (const { reject } of this.#waiting) reject(new ServiceStopping());
  }
}
