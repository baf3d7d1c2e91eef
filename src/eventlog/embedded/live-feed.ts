/** Hands new appends of this process to all listeners, in the log's order and through bounded buffers. */
import type { RecordedEvent } from '../port.js';

/** Bounds of a listener's buffer. A listener that falls further behind reads from storage again. */
const MAX_BUFFERED_EVENTS = 8_192;
const MAX_BUFFERED_CHARS = 16 * 1024 * 1024;

export class LiveFeed {
  readonly #listeners = new Set<FeedListener>();
  #closed: Error | null = null;

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  publish(events: readonly RecordedEvent[]): void {
    for (const listener of this.#listeners) listener.take(events);
  }

  /** A listener that receives everything published from now on. @throws the reason of `close` */
  join(signal: AbortSignal): FeedListener {
    if (this.#closed !== null) throw this.#closed;
    const listener = new FeedListener(signal);
    this.#listeners.add(listener);
    return listener;
  }

  leave(listener: FeedListener): void {
    this.#listeners.delete(listener);
    listener.leave();
  }

  /** Makes `next` of all listeners throw the reason. */
  close(reason: Error): void {
    this.#closed ??= reason;
    for (const listener of this.#listeners) listener.close(this.#closed);
  }
}

export class FeedListener {
  readonly #signal: AbortSignal;
  #events: RecordedEvent[] = [];
  #chars = 0;
  #hasOverflowed = false;
  #closed: Error | null = null;
  #wake = (): void => undefined;
  readonly #onAbort = (): void => this.#wake();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
  }

  take(events: readonly RecordedEvent[]): void {
    if (this.#hasOverflowed) return;
    for (const event of events) {
      this.#events.push(event);
      this.#chars += event.data.length;
    }
    this.#hasOverflowed = this.#events.length > MAX_BUFFERED_EVENTS || this.#chars > MAX_BUFFERED_CHARS;
    if (this.#hasOverflowed) this.#events = [];
    this.#wake();
  }

  close(reason: Error): void {
    this.#closed = reason;
    this.#wake();
  }

  leave(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  /** Waits for events or the signal; returns the events since the last call, or null if the buffer has overflowed. */
  async next(): Promise<readonly RecordedEvent[] | null> {
    if (this.#events.length === 0 && !this.#hasOverflowed && this.#closed === null && !this.#signal.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.#closed !== null) throw this.#closed;
    const events = this.#hasOverflowed ? null : this.#events;
    [this.#events, this.#chars, this.#hasOverflowed] = [[], 0, false];
    return events;
  }
}
