/** Verifies records in the background, to find corrupt ones before clients request them. */
import type { System } from '../system/system.js';
import { retryWhileUnavailable } from '../eventlog/port.js';
import { settledWithin } from '../system/async/deadline.js';

/** How long the start of the service waits for the check, in milliseconds: enough for about a hundred records. */
const START_WAITS_MS = 100;

export interface RecordCheckDeps {
  /** Verifies a record and marks it if it is corrupt. */
  readonly verify: (id: string) => Promise<unknown>;
  readonly system: Pick<System, 'after'>;
  /** Called with the error that ends the check early. */
  readonly onFault: (error: unknown) => void;
}

export interface RecordCheck {
  /** Starts the check. Resolves once it is complete, or after 100 ms, while it continues in the background. */
  start(ids: AsyncIterable<string>): Promise<void>;
  /** Stops the check, and resolves once it has stopped. */
  stop(): Promise<void>;
}

export function recordCheck({ verify, system, onFault }: RecordCheckDeps): RecordCheck {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running = Promise.resolve();

  const run = async (ids: AsyncIterable<string>): Promise<void> => {
    try {
      for await (const id of ids) {
        if (signal.aborted) return;
        await retryWhileUnavailable(() => verify(id), { system, signal });
      }
    } catch (error) {
      if (!signal.aborted) onFault(error);
    }
  };
  return {
    async start(ids) {
      running = run(ids);
      await settledWithin(running, { system, maxMs: START_WAITS_MS });
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
