import type { EventLog } from '../../src/eventlog/port.js';

/** A log with some of its methods replaced. */
export function changedLog(log: EventLog, changes: Partial<EventLog>): EventLog {
  return {
    append: (stream, events, expected) => log.append(stream, events, expected),
    readStream: (stream, range) => log.readStream(stream, range),
    readAll: (after, range) => log.readAll(after, range),
    subscribe: (after, following) => log.subscribe(after, following),
    remove: (streams) => log.remove(streams),
    identity: () => log.identity(),
    head: () => log.head(),
    hasGaps: () => log.hasGaps(),
    ping: () => log.ping(),
    ...(log.backup && { backup: log.backup.bind(log) }),
    close: () => log.close(),
    ...changes,
  };
}
