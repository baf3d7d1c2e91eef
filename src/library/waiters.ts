/** Those who wait until something holds. */
import { ServiceStopping } from '../errors.js';

export interface Waiters {
  /**
   * Resolves once a condition holds, which is looked at now and at each `look`.
   *
   * @throws {ServiceStopping} when it is ended before, and why the signal was aborted
   */
  until(holds: () => boolean, signal?: AbortSignal): Promise<void>;
  look(): void;
  /** Nobody's condition comes to hold any more. */
  end(): void;
}

interface Waiter {
  readonly holds: () => boolean;
  readonly settle: (error?: Error) => void;
}

export function waiters(): Waiters {
  const waiting = new Set<Waiter>();
  let isEnded = false;
  return {
    until(holds, signal) {
      if (holds()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const abort = (): void => waiter.settle(reasonOf(signal));
        const waiter: Waiter = {
          holds,
          settle(error) {
            waiting.delete(waiter);
            signal?.removeEventListener('abort', abort);
            if (error === undefined) resolve();
            else reject(error);
          },
        };
        if (isEnded) return waiter.settle(new ServiceStopping());
        if (signal?.aborted === true) return abort();
        waiting.add(waiter);
        signal?.addEventListener('abort', abort);
      });
    },
    look() {
      for (const { holds, settle } of waiting) if (holds()) settle();
    },
    end() {
      isEnded = true;
      for (const { settle } of waiting) settle(new ServiceStopping());
    },
  };
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('The wait was aborted');
}
