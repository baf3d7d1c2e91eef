/** A subscription to everything this log records: one call that never ends by itself. */
import type { System } from '../../system/system.js';
import { LogClosed, SubscriptionDropped } from '../../errors.js';
import { wait } from '../../system/async/wait.js';
import type { Followed, SubscribeOptions, Position } from '../port.js';
import { faultOf } from './server-errors.js';
import { idleTimeout } from './idle-timeout.js';
import { positionOf } from './position.js';
import { answersTo, batchesTo } from './read-call.js';
import { readAllMessage, subscribeMessage } from './read-message.js';
import type { Reader } from './reads.js';
import { RETRY_MS } from './reads.js';
import { eventIn, isOurs } from './recorded-event.js';
import type { ReadAnswer } from './wire.js';

/** Events passed over here before a subscriber is told how far it has come; the server tells of those it passes over. */
const CHECKPOINT_EVERY = 1_000;

/** Live events within a time, in milliseconds, from which on they are read in pages: 2,500 a second. */
const MANY = 100;
const MANY_WITHIN_MS = 40;
/** Most events of a page, time between two pages in milliseconds, and events of a page below which live ones do. */
const PAGE = 1_000;
const PAGE_EVERY_MS = 20;
const FEW = 10;

/** How far the subscriber has come: told of, or seen and passed over. */
interface Progress {
  seen: Position;
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
export function follow(reader: Reader, after: Position | null, following: SubscribeOptions): AsyncIterable<Followed> {
  return oneByOne(followedFrom(reader, after, following), following.signal);
}

async function* followedFrom(
  reader: Reader,
  after: Position | null,
  following: SubscribeOptions,
): AsyncGenerator<readonly Followed[]> {
  const { signal } = following;
  let last = after;
  try {
    const progress: Progress = { seen: after ?? (await reader.naming.name()).position, passed: 0, isCaughtUp: false };
    for await (const answers of answersFrom(reader, progress, following)) {
      const batch: Followed[] = [];
      for (const answer of answers) {
        const followed = followedIn(answer, { reader, progress, following });
        if (followed === null) continue;
        if (followed.kind === 'event') last = followed.event.position;
        else if (followed.kind === 'checkpoint') last = followed.position;
        batch.push(followed);
      }
      yield batch;
    }
  } catch (cause) {
    if (!signal.aborted) throw new SubscriptionDropped({ last }, { cause });
  }
}

/** What comes, one by one while it is little, in pages while it is much. */
async function* answersFrom(
  reader: Reader,
  progress: Progress,
  following: { readonly categories?: readonly string[] | null; readonly signal: AbortSignal },
): AsyncGenerator<readonly ReadAnswer[]> {
  while (!following.signal.aborted) {
    for await (const answer of liveAnswers(reader, progress, following)) yield [answer];
    yield* pagedAnswers(reader, progress, following);
  }
}

/**
 * Answers to a subscription, made again while the server has not answered and is waited for, and after it has let go
 * a subscriber that was too slow and came forward all the same. Ends when live events come too densely.
 */
async function* liveAnswers(
  { connection, names, system, deadlineMs }: Reader,
  progress: Progress,
  { categories = null, signal }: { readonly categories?: readonly string[] | null; readonly signal: AbortSignal },
): AsyncGenerator<ReadAnswer> {
  let waiting = idleTimeout(system, deadlineMs, signal);
  try {
    for (;;) {
      const density = new Density(system);
      let answered = 0;
      try {
        const request = subscribeMessage(progress.seen, { names, categories });
        for await (const answer of density.while(answersTo(request, connection, waiting.signal))) {
          // From the first answer on silence means that nothing is appended.
          waiting.pause();
          answered += 1;
          yield answer;
        }
        if (density.isDense) return;
        throw new Error('The server ended the subscription');
      } catch (error) {
        const isTooSlow = faultOf(error) === 'too-slow' && answered > 1;
        if (waiting.signal.aborted || isFinal(error) || (answered > 0 && !isTooSlow)) throw error;
        if (isTooSlow) {
          waiting.end();
          waiting = idleTimeout(system, deadlineMs, signal);
        }
      }
      await wait(system, RETRY_MS, waiting.signal);
    }
  } finally {
    waiting.end();
  }
}

/** How densely live events come. */
class Density {
  readonly #system: Pick<System, 'monotonicMs'>;
  #isLive = false;
  #count = 0;
  #sinceMs = 0;

  constructor(system: Pick<System, 'monotonicMs'>) {
    this.#system = system;
  }

  /** Whether so many have come that they are better read in pages. */
  isDense = false;

  /** The answers until then. */
  async *while(answers: AsyncIterable<ReadAnswer>): AsyncGenerator<ReadAnswer> {
    for await (const answer of answers) {
      yield answer;
      this.#take(answer);
      if (this.isDense) return;
    }
  }

  #take({ caughtUp, event }: ReadAnswer): void {
    // History comes in pages as it is.
    this.#isLive ||= caughtUp !== null;
    if (!this.#isLive || event === null) return;
    this.#count += 1;
    if (this.#count % MANY !== 1) return;
    const nowMs = this.#system.monotonicMs();
    this.isDense = this.#count > 1 && nowMs - this.#sinceMs < MANY_WITHIN_MS;
    this.#sinceMs = nowMs;
  }
}

/**
 * What has been appended since, read every few milliseconds: a live event costs server and service three times what
 * one of a page does. Ends when there is little.
 */
async function* pagedAnswers(
  { connection, names, system, deadlineMs }: Reader,
  progress: Progress,
  { categories = null, signal }: { readonly categories?: readonly string[] | null; readonly signal: AbortSignal },
): AsyncGenerator<readonly ReadAnswer[]> {
  const waiting = idleTimeout(system, deadlineMs, signal);
  try {
    for (let count = PAGE; count >= FEW;) {
      count = 0;
      const request = readAllMessage(progress.seen, { names, categories, max: PAGE });
      const options = { signal: waiting.signal, onAnswer: waiting.resume };
      for await (const answers of batchesTo(request, connection, options)) {
        count += answers.length;
        waiting.pause();
        yield answers;
        waiting.resume();
      }
      waiting.pause();
      if (count < PAGE) await wait(system, PAGE_EVERY_MS, signal);
      waiting.resume();
      signal.throwIfAborted();
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
  { reader, progress, following }: { reader: Reader; progress: Progress; following: SubscribeOptions },
): Followed | null {
  const { names } = reader;
  if (answer.caughtUp !== null && !progress.isCaughtUp) {
    progress.isCaughtUp = true;
    return { kind: 'caughtUp' };
  }
  if (answer.checkpoint !== null) return checkpointAt(progress, positionOf(answer.checkpoint));
  const read = eventIn(answer, names);
  if (read === null) return null;
  // A page begins with the event before it.
  if (read.position <= progress.seen) return null;
  progress.seen = read.position;
  if (isOurs(read) && names.isWanted(read.stream, following.categories ?? null)) {
    progress.passed = 0;
    return { kind: 'event', event: read };
  }
  progress.passed += 1;
  return progress.passed < CHECKPOINT_EVERY ? null : checkpointAt(progress, read.position);
}

function checkpointAt(progress: Progress, position: Position): Followed {
  progress.seen = position;
  progress.passed = 0;
  return { kind: 'checkpoint', position };
}

// Batches given item by item.

/**
 * Gives the items of batches one by one, up to the signal. A generator would do the same and wait several times
 * for each item; unlike one, it must not be asked for the next item before it has given the last, as `for await` does not.
 */
function oneByOne<T>(batches: AsyncGenerator<readonly T[]>, signal: AbortSignal): AsyncIterableIterator<T> {
  let batch: readonly T[] = [];
  let next = 0;
  const end = async (): Promise<IteratorResult<T>> => {
    batch = [];
    next = 0;
    await batches.return(undefined);
    return { done: true, value: undefined };
  };
  const fromNextBatch = async (): Promise<IteratorResult<T>> => {
    do {
      const taken = await batches.next();
      if (taken.done === true) return { done: true, value: undefined };
      batch = taken.value;
      next = 0;
    } while (batch.length === 0);
    return give();
  };
  const give = (): Promise<IteratorResult<T>> => {
    if (signal.aborted) return end();
    const item = batch[next];
    if (item === undefined) return fromNextBatch();
    next += 1;
    return Promise.resolve({ done: false, value: item });
  };
  return {
    next: give,
    return: end,
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
