/** Reads all events of this log, up to the newest or without end: both are subscriptions of the server. */
import { LogClosed, LogDenied, LogUnavailable, SubscriptionDropped } from '../errors.js';
import { wait } from '../../system/async/deadline.js';
import type { AllRange, Followed, Position, RecordedEvent, SubscribeOptions } from '../port.js';
import { isOfTypes, reachedPosition } from '../port.js';
import { answersTo } from './answers.js';
import { isDenied, isTooSlow } from './clients.js';
import type { IdleTimeout } from './idle-timeout.js';
import { idleTimeout, ServerSilent } from './idle-timeout.js';
import type { ReadEvent, StreamNames } from './names.js';
import { eventIn, isOurs } from './names.js';
import { subscribeRequest } from './read-messages.js';
import type { Reader } from './reads.js';
import { RETRY_MS } from './reads.js';
import type { ReadAnswer } from './streams-service.js';

/**
 * Events that this process skips before the subscriber receives a checkpoint. For events that the server skips, the
 * server sends checkpoints.
 */
const CHECKPOINT_EVERY = 1_000;

/** Where a reader begins. */
export interface Beginning {
  /** Exclusive, or null for the beginning of this log. */
  readonly after: Position | null;
  /** Returns the position at which this log begins; may ask the server for it. */
  readonly begin: () => Promise<Position>;
}

/**
 * The events of all streams after a position, up to the newest. Uses a subscription, because a plain read has no filter.
 *
 * @throws {LogUnavailable} the server sent nothing within the deadline, or denied access @throws {LogClosed}
 */
export async function* allEvents(reader: Reader, from: Beginning, range: AllRange): AsyncGenerator<RecordedEvent> {
  const waiting = idleTimeout(reader.system, reader.deadlineMs, []);
  const rest = { after: from.after, left: range.max ?? Infinity };
  let cause: unknown = new ServerSilent(reader.deadlineMs);
  try {
    while (!waiting.signal.aborted) {
      try {
        yield* upToNewest(reader, { ...from, range, rest, waiting });
        return;
      } catch (error) {
        if (!(error instanceof SubscriptionDropped)) throw error;
        cause = error.cause;
        if (cause instanceof LogClosed || cause instanceof LogUnavailable) throw cause;
        if (isDenied(cause)) throw new LogDenied({ cause });
        await wait(reader.system, RETRY_MS, waiting.signal);
      }
    }
  } finally {
    waiting.end();
  }
  throw new LogUnavailable({ cause });
}

interface Reading extends Pick<Beginning, 'begin'> {
  readonly range: AllRange;
  /** What is still to read if the subscription is dropped. */
  readonly rest: { after: Position | null; left: number };
  readonly waiting: IdleTimeout;
}

/** @throws {SubscriptionDropped} before it has come to the newest event */
async function* upToNewest(
  reader: Reader,
  { begin, range: { categories }, rest, waiting }: Reading,
): AsyncGenerator<RecordedEvent> {
  if (rest.left <= 0) return;
  const options = { ...(categories && { categories }), signal: waiting.signal };
  for await (const followed of follow(reader, { after: rest.after, begin }, options)) {
    if (followed.kind === 'caughtUp') return;
    rest.after = reachedPosition(followed);
    if (followed.kind === 'event') {
      rest.left -= 1;
      waiting.pause();
      yield followed.event;
    }
    if (rest.left === 0) return;
    waiting.resume();
  }
  throw new SubscriptionDropped({ last: rest.after }, { cause: waiting.signal.reason });
}

/** How far a subscription has come, and how many events it skipped since the last checkpoint. */
interface Progress {
  seen: Position;
  skipped: number;
  isCaughtUp: boolean;
}

/**
 * Follows the log as the port requires. Events that the subscriber has not consumed wait at the server. If the server
 * drops a subscriber for being too slow, this function subscribes again where it was. A lost connection ends the
 * subscription, because a subscriber that relies on being caught up must learn that it is not.
 *
 * @throws {SubscriptionDropped} the connection is lost or cannot be made in time, or the log is closed
 */
export async function* follow(
  reader: Reader,
  { after, begin }: Beginning,
  options: SubscribeOptions,
): AsyncGenerator<Followed> {
  const { signal } = options;
  let last = after;
  try {
    if (reader.closing.aborted) throw new LogClosed();
    const progress: Progress = { seen: after ?? (await begin()), skipped: 0, isCaughtUp: false };
    for await (const batch of resubscribed(reader, progress, options)) {
      for (const answer of batch) {
        if (signal.aborted) return;
        const followed = followedIn(answer, { reader, progress, options });
        if (followed === null) continue;
        last = reachedPosition(followed) ?? last;
        yield followed;
      }
    }
  } catch (cause) {
    if (signal.aborted) return;
    const isOfPort = cause instanceof LogClosed || cause instanceof LogUnavailable;
    throw new SubscriptionDropped({ last }, { cause: isOfPort ? cause : reader.clients.redacted(cause) });
  }
}

/**
 * What the server delivers. Subscribes again while the server does not confirm within the deadline, and after the server
 * has dropped a slow subscriber that made progress.
 */
async function* resubscribed(
  reader: Reader,
  progress: Progress,
  options: SubscribeOptions,
): AsyncGenerator<readonly ReadAnswer[]> {
  const { clients, names } = reader;
  const renewed = (): IdleTimeout => idleTimeout(reader.system, reader.deadlineMs, [options.signal, reader.closing]);
  let waiting = renewed();
  try {
    for (;;) {
      let isConfirmed = false;
      let hasProgress = false;
      try {
        const request = subscribeRequest(progress.seen, names, options);
        for await (const batch of answersTo(request, clients, waiting.signal)) {
          // From now on silence means that nothing is appended.
          isConfirmed = true;
          waiting.pause();
          hasProgress ||= batch.some(({ kind }) => kind !== 'other');
          yield batch;
        }
        throw new Error('The server ended the subscription');
      } catch (error) {
        const isSlow = hasProgress && isTooSlow(error);
        if (waiting.signal.aborted || isDenied(error) || (isConfirmed && !isSlow)) throw error;
        if (isSlow) {
          waiting.end();
          waiting = renewed();
        }
      }
      await wait(reader.system, RETRY_MS, waiting.signal);
    }
  } finally {
    waiting.end();
  }
}

/** What a subscriber receives for an answer, or null if that is nothing. */
function followedIn(
  answer: ReadAnswer,
  { reader: { names }, progress, options }: { reader: Reader; progress: Progress; options: SubscribeOptions },
): Followed | null {
  switch (answer.kind) {
    case 'other':
      return null;
    case 'caughtUp':
      if (progress.isCaughtUp) return null;
      progress.isCaughtUp = true;
      return { kind: 'caughtUp' };
    case 'checkpoint':
      progress.seen = answer.position;
      break;
    case 'event': {
      const event = eventIn(answer.event, names);
      progress.seen = event.position;
      progress.skipped += 1;
      if (!isWanted(event, names, options)) {
        if (progress.skipped < CHECKPOINT_EVERY) return null;
        break;
      }
      progress.skipped = 0;
      return { kind: 'event', event };
    }
  }
  progress.skipped = 0;
  return { kind: 'checkpoint', position: progress.seen };
}

function isWanted(
  event: ReadEvent,
  names: StreamNames,
  { categories, types }: SubscribeOptions,
): event is RecordedEvent {
  return isOurs(event) && names.isWanted(event.stream, categories ?? null) && isOfTypes(event.type, types);
}
