/**
 * One log for several engines of this process. Each engine has its own line to it, which a test can cut and repair.
 */
import { join } from 'node:path';
import { AppendOutcomeUnknown, LogUnavailable, SubscriptionDropped } from '../../src/eventlog/errors.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, Position } from '../../src/eventlog/port.js';
import { changedLog } from './changed-log.js';

/** `up`: works; `down`: refuses calls; `lossy`: executes a call and loses the answer; `silent`: answers no call. */
export type LineState = 'up' | 'down' | 'lossy' | 'silent';

export interface LogLine {
  readonly log: EventLog;
  isUp(): boolean;
  turn(state: LineState): void;
}

export interface SharedLog {
  readonly log: EventLog;
  /** A new line; closing it leaves the log open. */
  line(): LogLine;
  close(): Promise<void>;
}

export async function openSharedLog(dir: string): Promise<SharedLog> {
  const log = await openEmbeddedLog({ file: join(dir, 'shared.sqlite') });
  return { log, line: () => lineTo(log), close: () => log.close() };
}

function lineTo(log: EventLog): LogLine {
  let state: LineState = 'up';
  const waiting = new Set<() => void>();

  /** Passes while the line is up or lossy; waits while it is silent. */
  async function pass(): Promise<void> {
    while (state === 'silent') await new Promise<void>((resolve) => waiting.add(resolve));
    if (state === 'down') throw new LogUnavailable();
  }

  return {
    isUp: () => state === 'up',
    turn(next) {
      state = next;
      for (const go of waiting) go();
      waiting.clear();
    },
    log: changedLog(log, {
      async append(stream, events, expected) {
        await pass();
        const appended = await log.append(stream, events, expected);
        if (state !== 'up') throw new AppendOutcomeUnknown({ stream });
        return appended;
      },
      async *readStream(stream, range) {
        await pass();
        yield* log.readStream(stream, range);
      },
      async *subscribe(after, following) {
        let last: Position | null = after;
        for await (const followed of log.subscribe(after, following)) {
          while (state === 'silent') {
            if (following.signal.aborted) return;
            await pass().catch(() => undefined);
          }
          if (state === 'down') throw new SubscriptionDropped({ last });
          if (followed.kind !== 'caughtUp')
            last = followed.kind === 'event' ? followed.event.position : followed.position;
          yield followed;
        }
      },
      async head() {
        await pass();
        return await log.head();
      },
      async ping() {
        await pass();
        await log.ping();
      },
      close: () => Promise.resolve(),
    }),
  };
}
