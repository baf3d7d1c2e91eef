/** One watcher of a run in the feed: its next event, and whether it receives live events. */
import type { RunEvent } from '../run/events.js';
import type { LiveEvent } from './live-event.js';

export interface WatcherOptions {
  /** Revision of the first event wanted. */
  readonly from: number;
  /**
   * Called with the events in order, each exactly once. The next piece of the record waits until the returned promises
   * of this one have resolved; live events do not wait. The promise must not reject.
   */
  readonly onEvent: (event: RunEvent) => void | Promise<void>;
}

export class RunWatcher {
  readonly #onEvent: WatcherOptions['onEvent'];
  #next: number;
  #hash: string | null = null;
  #isOver = false;
  /** Settles the wait in `receiveLive`, or null while the watcher reads the log. */
  #live: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | null = null;

  constructor({ from, onEvent }: WatcherOptions) {
    this.#next = from;
    this.#onEvent = onEvent;
  }

  /** Revision of the next event to give. */
  get next(): number {
    return this.#next;
  }

  /** Hash of the last event given, or null before the first. */
  get hash(): string | null {
    return this.#hash;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives the next event; the run's last one ends the watching. */
  give(event: RunEvent): void | Promise<void> {
    this.#next = event.seq + 1;
    this.#hash = event.hash;
    const taken = this.#onEvent(event);
    if (event.type === 'RunCompleted' || event.type === 'RunFailed') this.end();
    return taken;
  }

  /** Receives live events until the watching ends or the log must be read again. Rejects with what `onEvent` throws. */
  async receiveLive(): Promise<void> {
    if (this.#isOver) return;
    await new Promise<void>((resolve, reject) => (this.#live = { resolve, reject }));
  }

  /**
   * Gives a live event, if the watcher receives these. One that does not follow the last is read from the log instead.
   */
  deliver(live: LiveEvent): void {
    const waiting = this.#live;
    if (waiting === null || live.revision < this.#next) return;
    const event = live.revision === this.#next ? live.after(this.#hash) : null;
    if (event === null) return this.stopLive();
    try {
      void this.give(event);
    } catch (error) {
      // The other watchers must get the event.
      this.#live = null;
      waiting.reject(error);
    }
  }

  /** Makes the watcher read the log again. */
  stopLive(): void {
    this.#live?.resolve();
    this.#live = null;
  }

  end(): void {
    this.#isOver = true;
    this.stopLive();
  }
}
