/** Hands new appends of this process to all listeners, in the log's order and through bounded buffers. */
import type { RecordedEvent } from '../port.js';

/** Bounds of a listener's buffer; one that falls further behind reads from storage again. */
const MAX_BUFFERED_EVENTS = 8_192;
const MAX_BUFFERED_CHARS = 16 * 1024 * 1024;

export interface Listener {
  /** Events since the last call; null when the buffer has overflowed. Waits for events or the signal. */
  next(): Promise<readonly RecordedEvent[] | null>;
  leave(): void;
}

export interface LiveFeed {
  publish(events: readonly RecordedEvent[]): void;
  /** Whether anyone listens; when nobody does, nothing needs to be prepared. */
  hasListeners(): boolean;
  /** Receives everything published from now on. Throws the reason once closed. */
  join(signal: AbortSignal): Listener;
  /** Wakes all listeners; their `next` rejects with the reason. */
  close(reason: Error): void;
}

interface Mailbox {
  take(events: readonly RecordedEvent[]): void;
  wake(): void;
}

export function liveFeed(): LiveFeed {
  const mailboxes = new Set<Mailbox>();
  let closed: Error | null = null;

  function join(signal: AbortSignal): Listener {
    if (closed !== null) throw closed;
    let events: RecordedEvent[] = [];
    let chars = 0;
    let isOverfull = false;
    let wake = (): void => undefined;
    const mailbox: Mailbox = {
      take(incoming) {
        if (isOverfull) return;
        for (const event of incoming) {
          events.push(event);
          chars += event.data.length;
        }
        isOverfull = events.length > MAX_BUFFERED_EVENTS || chars > MAX_BUFFERED_CHARS;
        if (isOverfull) events = [];
        wake();
      },
      wake: () => wake(),
    };
    mailboxes.add(mailbox);
    signal.addEventListener('abort', mailbox.wake);
    return {
      async next() {
        if (events.length === 0 && !isOverfull && closed === null && !signal.aborted) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        if (closed !== null) throw closed;
        const taken = isOverfull ? null : events;
        events = [];
        chars = 0;
        isOverfull = false;
        return taken;
      },
      leave() {
        mailboxes.delete(mailbox);
        signal.removeEventListener('abort', mailbox.wake);
      },
    };
  }

  return {
    join,
    hasListeners: () => mailboxes.size > 0,
    publish: (events) => mailboxes.forEach((mailbox) => mailbox.take(events)),
    close(reason) {
      closed ??= reason;
      mailboxes.forEach((mailbox) => mailbox.wake());
    },
  };
}
