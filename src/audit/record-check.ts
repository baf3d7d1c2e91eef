/** Verifies records in the background, so that a corrupt one is found before it is requested. */
import type { System } from '../system/system.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import { settledWithin } from '../system/async/deadline.js';

/** How long the start waits for it, in milliseconds: enough for about a hundred records. */
const START_WAITS_MS = 100;

export interface RecordCheckDeps {
  /** Verifies a record and marks it if it is corrupt. */
  readonly verify: (id: string) => Promise<unknown>;
  readonly system: Pick<System, 'after'>;
  /** Called with the error that ends it early. */
  readonly onFault: (error: unknown) => void;
}

export interface RecordCheck {
  /** Starts the check; resolves once it is complete, or has taken so long that it continues in the background. */
  start(ids: AsyncIterable<string>): Promise<void>;
  /** Ends the check; resolves once it has ended. */
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
