/** A subscription to everything this log records: one call that never ends by itself. */
import { LogClosed, SubscriptionDropped } from '../../errors.js';
import { wait } from '../../wait.js';
import type { Followed, Following, Position } from '../port.js';
import { faultOf } from './faults.js';
import { patience } from './patience.js';
import { positionOf } from './position.js';
import { answersTo } from './read-call.js';
import { subscribeMessage } from './read-message.js';
import type { Reader } from './reads.js';
import { RETRY_MS } from './reads.js';
import { eventIn } from './recorded.js';
import type { ReadAnswer } from './wire.js';

/** Events passed over here before a subscriber is told how far it has come; the server tells of those it passes over. */
const CHECKPOINT_EVERY = 1_000;

/** How far the subscriber has come: told of, or seen and passed over. */
interface Progress {
  seen: Position | null;
  passed: number;
  isCaughtUp: boolean;
}

/**
 * Follows the log as its port promises. What the subscriber has not taken waits at the server; one that the server
 * lets go for it is subscribed again where it was, and notices nothing. A lost connection ends it, because whoever
 * relies on being caught up must know that it is not.
 *
 * @throws {SubscriptionDropped} when the connection is lost, cannot be made in time, or the log is closed
 */
export async function* follow(reader: Reader, after: Position | null, following: Following): AsyncGenerator<Followed> {
  const { signal } = following;
  const progress: Progress = { seen: after, passed: 0, isCaughtUp: false };
  let last = after;
  try {
    for await (const answer of answersFrom(reader, progress, following)) {
      const followed = followedIn(answer, { reader, progress, following });
      if (signal.aborted) return;
      if (followed === null) continue;
      if (followed.kind === 'event') last = followed.event.position;
      else if (followed.kind === 'checkpoint') last = followed.position;
      yield followed;
    }
  } catch (cause) {
    if (!signal.aborted) throw new SubscriptionDropped({ last }, { cause });
  }
}

/**
 * Answers to a subscription, made again while the server has not answered and is waited for, and after it has let go
 * a subscriber that was too slow and came forward all the same.
 */
async function* answersFrom(
  { connection, names, ambient, deadlineMs }: Reader,
  progress: Progress,
  { categories = null, signal }: { readonly categories?: readonly string[] | null; readonly signal: AbortSignal },
): AsyncGenerator<ReadAnswer> {
  let waiting = patience(ambient, deadlineMs);
  try {
    for (;;) {
      const either = AbortSignal.any([signal, waiting.signal]);
      let answered = 0;
      try {
        const request = subscribeMessage(progress.seen, { names, categories });
        for await (const answer of answersTo(request, connection, either)) {
          // From the first answer on silence means that nothing is appended.
          waiting.end();
          answered += 1;
          yield answer;
        }
        throw new Error('The server ended the subscription');
      } catch (error) {
        const isTooSlow = faultOf(error) === 'too-slow' && answered > 1;
        if (either.aborted || isFinal(error) || (answered > 0 && !isTooSlow)) throw error;
        if (isTooSlow) waiting = patience(ambient, deadlineMs);
      }
      await wait(ambient, RETRY_MS, AbortSignal.any([signal, waiting.signal]));
    }
  } finally {
    waiting.end();
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof LogClosed || faultOf(error) === 'denied';
}

function followedIn(
  answer: ReadAnswer,
  { reader, progress, following }: { reader: Reader; progress: Progress; following: Following },
): Followed | null {
  const { names } = reader;
  if (answer.caughtUp !== null && !progress.isCaughtUp) {
    progress.isCaughtUp = true;
    return { kind: 'caughtUp' };
  }
  if (answer.checkpoint !== null) return told(progress, positionOf(answer.checkpoint));
  const read = eventIn(answer, names);
  if (read === null) return null;
  const { event, stream } = read;
  if (stream !== null && names.isWanted(stream, following.categories ?? null)) {
    told(progress, event.position);
    return { kind: 'event', event: { ...event, stream } };
  }
  progress.seen = event.position;
  progress.passed += 1;
  return progress.passed < CHECKPOINT_EVERY ? null : told(progress, event.position);
}

function told(progress: Progress, position: Position): Followed {
  progress.seen = position;
  progress.passed = 0;
  return { kind: 'checkpoint', position };
}
