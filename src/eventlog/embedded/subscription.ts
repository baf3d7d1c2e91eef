/** Subscriptions: stored events after a position, then live ones, joined without gap or repetition. */
import { SubscriptionDropped } from '../errors.js';
import { oneByOne } from '../one-by-one.js';
import { ordinalOf, positionOf } from './messages.js';
import type { Followed, Position, RecordedEvent, SubscribeOptions } from '../port.js';
import { categoryOf, isOfTypes } from '../port.js';

/** Events that are not wanted and are skipped before the subscriber is sent a checkpoint. */
const CHECKPOINT_EVERY = 1_000;

export interface Followable {
  readonly feed: LiveFeed;
  /** Ordinal of the newest event that has been published. */
  readonly head: () => number;
  /** Stored events after an ordinal; `end` is where reading stopped, null when it reached `until`. */
  readonly page: (query: {
    readonly after: number;
    readonly until: number;
    readonly categories: readonly string[] | null;
  }) => Promise<{ readonly events: readonly RecordedEvent[]; readonly end: number | null }>;
}

/** How far reading has come, and how far of that the subscriber has been sent. */
interface Progress {
  seen: number;
  reported: number;
}

/**
 * Follows a log as the port demands: history after a position, `caughtUp` once, then what is published. A subscriber
 * too slow for its buffer is served from storage again, without noticing.
 *
 * @throws {SubscriptionDropped} the log is closed or fails meanwhile
 */
export function follow(log: Followable, after: Position | null, following: SubscribeOptions): AsyncIterable<Followed> {
  return oneByOne(followedFrom(log, after, following), following.signal);
}

async function* followedFrom(
  log: Followable,
  after: Position | null,
  following: SubscribeOptions,
): AsyncGenerator<readonly Followed[]> {
  let last = after;
  try {
    for await (const batch of batches(log, ordinalOf(after), following)) {
      yield batch;
      last = lastIn(batch) ?? last;
    }
  } catch (cause) {
    throw new SubscriptionDropped({ last }, { cause });
  }
}

function lastIn(batch: readonly Followed[]): Position | null {
  const followed = batch.at(-1);
  if (followed === undefined || followed.kind === 'caughtUp') return null;
  return followed.kind === 'event' ? followed.event.position : followed.position;
}

async function* batches(
  log: Followable,
  after: number,
  { signal, ...wanted }: SubscribeOptions,
): AsyncIterable<readonly Followed[]> {
  const progress = { seen: after, reported: after };
  const listener = log.feed.join(signal);
  try {
    let isCaughtUp = false;
    for (let live: Incoming = null; !signal.aborted; live = await listener.next()) {
      if (live === null) yield* history(log, progress, { wanted, signal });
      else yield selected(live, progress, wanted);
      if (!isCaughtUp) yield [{ kind: 'caughtUp' }];
      isCaughtUp = true;
    }
  } finally {
    listener.leave();
  }
}

type Wanted = Omit<SubscribeOptions, 'signal'>;

type Incoming = Awaited<ReturnType<Listener['next']>>;

/** What is stored up to the current head: later events are in the listener's buffer. */
async function* history(
  log: Followable,
  progress: Progress,
  { wanted: { categories, types }, signal }: { readonly wanted: Wanted; readonly signal: AbortSignal },
): AsyncIterable<readonly Followed[]> {
  const until = log.head();
  while (progress.seen < until && !signal.aborted) {
    const { events: found, end } = await log.page({ after: progress.seen, until, categories: categories ?? null });
    const events = found.filter(({ type }) => isOfTypes(type, types));
    const batch = events.map((event): Followed => ({ kind: 'event', event }));
    progress.seen = end ?? until;
    progress.reported = events.length === 0 ? progress.reported : ordinalOf(events.at(-1)?.position ?? null);
    yield checkpointed(batch, progress);
  }
}

/** The published events that are new and wanted; positions are dense, so their distance counts the skipped events. */
function selected(
  events: readonly RecordedEvent[],
  progress: Progress,
  { categories, types }: Wanted,
): readonly Followed[] {
  const batch: Followed[] = [];
  for (const event of events) {
    const ordinal = ordinalOf(event.position);
    if (ordinal <= progress.seen) continue;
    progress.seen = ordinal;
    if (categories?.includes(categoryOf(event.stream)) === false || !isOfTypes(event.type, types)) continue;
    progress.reported = ordinal;
    batch.push({ kind: 'event', event });
  }
  return checkpointed(batch, progress);
}

function checkpointed(batch: Followed[], progress: Progress): readonly Followed[] {
  if (progress.seen - progress.reported < CHECKPOINT_EVERY) return batch;
  progress.reported = progress.seen;
  return [...batch, { kind: 'checkpoint', position: positionOf(progress.seen) }];
}

// Hands new appends of this process to all listeners, in the log's order and through bounded buffers.

/** Bounds of a listener's buffer; one that falls further behind reads from storage again. */
const MAX_BUFFERED_EVENTS = 8_192;
const MAX_BUFFERED_CHARS = 16 * 1024 * 1024;

interface Listener {
  /** Events since the last call; null when the buffer has overflowed. Waits for events or the signal. */
  next(): Promise<readonly RecordedEvent[] | null>;
  leave(): void;
}

interface LiveFeed {
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
