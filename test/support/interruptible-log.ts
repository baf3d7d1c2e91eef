import { LogUnavailable } from '../../src/eventlog/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from './changed-log.js';

/** A log whose reads fail, at once or after some more reads. Open subscriptions continue. */
export interface InterruptibleLog {
  decorate(log: EventLog): EventLog;
  /** @param reads the number of reads that still succeed */
  failAfter(reads: number): void;
  recover(): void;
}

export function interruptibleLog(): InterruptibleLog {
  let left = Number.POSITIVE_INFINITY;
  const count = (): void => {
    if (left <= 0) throw new LogUnavailable();
    left -= 1;
  };
  return {
    decorate: (log) =>
      changedLog(log, {
        async *readStream(stream, range) {
          count();
          yield* log.readStream(stream, range);
        },
        async *readAll(after, range) {
          count();
          yield* log.readAll(after, range);
        },
        async head() {
          count();
          return await log.head();
        },
        async ping() {
          count();
          await log.ping();
        },
      }),
    failAfter: (reads) => void (left = reads),
    recover: () => void (left = Number.POSITIVE_INFINITY),
  };
}
