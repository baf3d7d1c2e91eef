/** A log that reports how long its appends take. */
import type { EventLog } from '../eventlog/port.js';
import type { System } from '../system/system.js';

/** @param onAppended called with the time from the call to the acknowledgement, in milliseconds */
export function timedLog(
  log: EventLog,
  { system, onAppended }: { readonly system: Pick<System, 'monotonicMs'>; readonly onAppended: (ms: number) => void },
): EventLog {
  return {
    append(stream, events, expected) {
      const fromMs = system.monotonicMs();
      return log.append(stream, events, expected).then((appended) => {
        onAppended(system.monotonicMs() - fromMs);
        return appended;
      });
    },
    readStream: (stream, range) => log.readStream(stream, range),
    readAll: (after, range) => log.readAll(after, range),
    subscribe: (after, options) => log.subscribe(after, options),
    identity: () => log.identity(),
    head: () => log.head(),
    hasGaps: () => log.hasGaps(),
    ping: () => log.ping(),
    ...(log.backup && { backup: log.backup.bind(log) }),
    close: () => log.close(),
  };
}
