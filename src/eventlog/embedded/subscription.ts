/** Subscriptions: stored events after a position, then live ones, joined without gap or repetition. */
import { SubscriptionDropped } from '../errors.js';
import type { Followed, Position, RecordedEvent, SubscribeOptions } from '../port.js';
import { categoryOf, isOfTypes, reachedPosition } from '../port.js';
import type { LiveFeed } from './live-feed.js';
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
