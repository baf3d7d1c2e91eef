/** Verifies records one after the other behind everything else, so that a damaged one is known before it is asked for. */
import type { System } from '../system/system.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import { wait } from '../system/async/wait.js';

/** How long the start waits for it, in milliseconds: a hundred records are through by then. */
const START_WAITS_MS = 100;

export interface RecordCheckDeps {
  /** Finds out, and takes note, whether a record bears out. */
  readonly verify: (id: string) => Promise<unknown>;
  readonly system: Pick<System, 'after'>;
  /** Told of what ends it early. */
  readonly onFault: (error: unknown) => void;
}

export interface RecordCheck {
  /** Begins; resolves once it is through, or goes on for so long that the start should not wait. */
  start(ids: AsyncIterable<string>): Promise<void>;
  /** Resolves once nothing is under way any more. */
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
      const waited = new AbortController();
      await Promise.race([running, wait(system, START_WAITS_MS, waited.signal)]);
      waited.abort();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
