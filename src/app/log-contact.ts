/** Repeats the first calls to the log until it answers, and logs each outage once. The wait has no limit. */
import { LogDenied, LogUnavailable } from '../eventlog/errors.js';
import { backoffMs } from '../system/async/retry.js';
import type { ContextDeps } from './context-deps.js';
import { rootCause } from './fault-reporter.js';

/** Wait between two tries, in milliseconds. */
const BACKOFF = { firstMs: 50, longestMs: 2_000 };

/** Log lines by the state of the log. */
const LINES = {
  away: 'the event log cannot be reached: waiting for it',
  denied: 'the event log refuses this service: check the user and password in EVENTSTORE_URL; trying again',
};

export class LogContact {
  readonly #deps: Pick<ContextDeps, 'system' | 'logger' | 'onLogAway'>;
  #state: keyof typeof LINES | 'reached' = 'reached';

  constructor(deps: Pick<ContextDeps, 'system' | 'logger' | 'onLogAway'>) {
    this.#deps = deps;
  }

  /** Repeats a call until the log answers. @throws every error of the call but LogUnavailable */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        const result = await call();
        this.#markReached();
        return result;
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
        this.#markAway(error);
      }
      await new Promise<void>((resolve) => this.#deps.system.after(backoffMs(BACKOFF, failures), resolve));
    }
  }

  #markReached(): void {
    if (this.#state === 'reached') return;
    this.#state = 'reached';
    this.#deps.onLogAway?.(false);
    this.#deps.logger.info({}, 'the event log answers');
  }

  #markAway(error: LogUnavailable): void {
    const state = error instanceof LogDenied ? 'denied' : 'away';
    if (this.#state === state) return;
    this.#state = state;
    this.#deps.onLogAway?.(true);
    this.#deps.logger.error({ reason: rootCause(error).message }, LINES[state]);
  }
}
