import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from './changed-log.js';

/** A log whose subscriptions deliver nothing while a test holds it. */
export interface HeldLog {
  decorate(log: EventLog): EventLog;
  hold(): void;
  release(): void;
}

export function heldLog(): HeldLog {
  let held = Promise.resolve();
  let release = (): void => undefined;
  return {
    decorate: (log) =>
      changedLog(log, {
        async *subscribe(after, following) {
          for await (const followed of log.subscribe(after, following)) {
            await held;
            yield followed;
          }
        },
      }),
    hold() {
      held = new Promise((resolve) => (release = resolve));
    },
    release: () => release(),
  };
}
