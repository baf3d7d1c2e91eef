/** Subscriptions: stored events after a position, then live ones, joined without gap or repetition. */
import { SubscriptionDropped } from '../errors.js';
import type { Followed, Position, RecordedEvent, SubscribeOptions } from '../port.js';
import { categoryOf, isOfTypes, reachedPosition } from '../port.js';
import type { Page } from './messages.js';
import { ordinalOf, positionOf } from './messages.js';

/** Events that are skipped before the subscriber receives a checkpoint. */
const CHECKPOINT_EVERY = 1_000;

export interface Followable {
  readonly feed: LiveFeed;
  /** Ordinal of the newest event that has been published. */
  readonly head: () => number;
  /** Stored events after an ordinal, up to and including another. */
  readonly readPage: (query: { readonly after: number; readonly until: number }) => Promise<Page>;
}

/**
 * Follows a log as the port demands: history after a position, `caughtUp` once, then what is published. A subscriber
 * that is too slow for its buffer continues from storage.
 *
 * @throws {SubscriptionDropped} the log is closed or fails meanwhile
 */
export async function* follow(
  log: Followable,
  after: Position | null,
  options: SubscribeOptions,
): AsyncGenerator<Followed> {
  let last = after;
  try {
    for await (const batch of batches(log, after, options)) {
      for (const followed of batch) {
        if (options.signal.aborted) return;
        last = reachedPosition(followed) ?? last;
        yield followed;
      }
    }
  } catch (cause) {
    throw new SubscriptionDropped({ last }, { cause });
  }
}

async function* batches(
  log: Followable,
  after: Position | null,
  options: SubscribeOptions,
): AsyncGenerator<readonly Followed[]> {
  const { signal } = options;
  const progress = new Progress(after, options);
  const listener = log.feed.join(signal);
  try {
    let isCaughtUp = false;
    for (let live: readonly RecordedEvent[] | null = null; !signal.aborted; live = await listener.next()) {
      if (live === null) yield* history(log, progress, signal);
      else yield progress.over(live);
      if (!isCaughtUp) yield [{ kind: 'caughtUp' }];
      isCaughtUp = true;
    }
  } finally {
    log.feed.leave(listener);
  }
}

/** What is stored up to the current head: later events are in the listener's buffer. */
async function* history(
  { head, readPage }: Followable,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<readonly Followed[]> {
  const until = head();
  while (progress.seen < until && !signal.aborted) {
    const page = await readPage({ after: progress.seen, until });
    yield progress.over(page.events, page.end ?? until);
  }
}

/** The position that a subscription has reached, and the last one that its subscriber received. */
class Progress {
  readonly #wanted: SubscribeOptions;
  #reported: number;
  /** Ordinal of the last event that was read. */
  seen: number;

  constructor(after: Position | null, wanted: SubscribeOptions) {
    this.#wanted = wanted;
    this.seen = ordinalOf(after);
    this.#reported = this.seen;
  }

  /**
   * The events that are new and wanted. Ordinals have no gaps, so their difference counts the skipped events.
   *
   * @param end the ordinal up to which they were read; default: the last of them
   */
  over(events: readonly RecordedEvent[], end = 0): readonly Followed[] {
    const batch: Followed[] = [];
    for (const event of events) {
      const ordinal = ordinalOf(event.position);
      if (ordinal <= this.seen) continue;
      this.seen = ordinal;
      if (!this.#isWanted(event)) continue;
      this.#reported = ordinal;
      batch.push({ kind: 'event', event });
    }
    this.seen = Math.max(this.seen, end);
    if (this.seen - this.#reported >= CHECKPOINT_EVERY) {
      this.#reported = this.seen;
      batch.push({ kind: 'checkpoint', position: positionOf(this.seen) });
    }
    return batch;
  }

  #isWanted({ stream, type }: RecordedEvent): boolean {
    const { categories, types } = this.#wanted;
    return categories?.includes(categoryOf(stream)) !== false && isOfTypes(type, types);
  }
}

/** Bounds of a listener's buffer. A listener that falls further behind reads from storage again. */
const MAX_BUFFERED_EVENTS = 8_192;
const MAX_BUFFERED_CHARS = 16 * 1024 * 1024;

/** Hands new appends of this process to all listeners, in the log's order and through bounded buffers. */
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

class FeedListener {
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
