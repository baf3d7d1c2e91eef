/** How a process kills itself at a chosen point, as a power cut would. */
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from './changed-log.js';

/** Where a process may die around an append. */
export type AppendBoundary = 'append unsent' | 'append sent' | 'append durable';

/** Kills this process at one point, and lets it pass all others. Ordinals count from 0. */
export function deathAt<Boundary extends string>(
  point: { readonly boundary: Boundary; readonly ordinal: number } | null,
): (boundary: Boundary, ordinal: number) => void {
  return (boundary, ordinal) => {
    if (point?.boundary === boundary && point.ordinal === ordinal) process.kill(process.pid, 'SIGKILL');
  };
}

/** A log whose appends to some streams pass three points each. `lastSeq` is the revision of an append's last event. */
export function mortalLog(
  log: EventLog,
  isMortal: (stream: string) => boolean,
  pass: (boundary: AppendBoundary, ordinal: number, lastSeq: number) => void,
): EventLog {
  let appends = 0;
  return changedLog(log, {
    async append(stream, events, expected) {
      if (!isMortal(stream)) return await log.append(stream, events, expected);
      const ordinal = appends;
      appends += 1;
      const lastSeq = (expected === 'none' ? -1 : expected) + events.length;
      pass('append unsent', ordinal, lastSeq);
      const appending = log.append(stream, events, expected);
      // The log hands its batch to its thread in the next turn. After that, the kill hits the write at any point.
      setImmediate(() => setImmediate(() => pass('append sent', ordinal, lastSeq)));
      const appended = await appending;
      pass('append durable', ordinal, lastSeq);
      return appended;
    },
  });
}
