/** A subscription to all events of this log: one call that never ends by itself. */
import type { System } from '../../system/system.js';
import { LogClosed, SubscriptionDropped } from '../errors.js';
import { wait } from '../../system/async/deadline.js';
import type { Followed, SubscribeOptions, Position } from '../port.js';
import { isOfTypes } from '../port.js';
import { oneByOne } from '../one-by-one.js';
import { faultOf } from './connection.js';
import { idleTimeout } from './reads.js';
import { positionOf } from './read-message.js';
import { batchesTo } from './reads.js';
import { readAllMessage, subscribeMessage } from './read-message.js';
import type { Reader } from './reads.js';
import { RETRY_MS } from './reads.js';
import { eventIn, isOurs } from './read-message.js';
import type { ReadAnswer } from './wire.js';

/** Events skipped here before the subscriber is sent a checkpoint; the server sends its own for those it skips. */
const CHECKPOINT_EVERY = 1_000;

/** Live events within a time, in milliseconds, at which reading switches to pages: 2,500 a second. */
const MANY = 100;
const MANY_WITHIN_MS = 40;
/** Most events of a page, milliseconds between two pages, and the page size below which reading is live again. */
const PAGE = 1_000;
const PAGE_EVERY_MS = 20;
const FEW = 10;

/** How far reading has come, and how many events were skipped since the last checkpoint. */
interface Progress {
  seen: Position;
  passed: number;
  isCaughtUp: boolean;
}

/**
 * Follows the log as the port demands. Events that the subscriber has not consumed wait at the server; a subscriber
 * dropped for being too slow is subscribed again where it was, without noticing. A lost connection ends the
 * subscription, because a subscriber that relies on being caught up must learn that it is not.
 *
 * @throws {SubscriptionDropped} the connection is lost or cannot be made in time, or the log is closed
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

/** Answers as they come while events are few, in pages while they are many. */
async function* answersFrom(
  reader: Reader,
  progress: Progress,
  following: SubscribeOptions,
): AsyncGenerator<readonly ReadAnswer[]> {
  while (!following.signal.aborted) {
    yield* liveAnswers(reader, progress, following);
    yield* pagedAnswers(reader, progress, following);
  }
}

/**
 * Answers to a live subscription. It is repeated while the server has not answered within the deadline, and after the
 * server has dropped a slow subscriber that did make progress. Ends when live events come too densely.
 */
async function* liveAnswers(
  { connection, names, system, deadlineMs }: Reader,
  progress: Progress,
  { signal, ...wanted }: SubscribeOptions,
): AsyncGenerator<readonly ReadAnswer[]> {
  let waiting = idleTimeout(system, deadlineMs, signal);
  try {
    for (;;) {
      const density = new Density(system);
      let answered = 0;
      try {
        const request = subscribeMessage(progress.seen, { names, ...wanted });
        // After the first answer, silence only means that nothing is appended.
        const options = { signal: waiting.signal, onAnswer: waiting.pause, asTheyCome: true };
        for await (const answers of density.while(batchesTo(request, connection, options))) {
          answered += answers.length;
          yield answers;
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

/** Measures how densely live events come. */
class Density {
  readonly #system: Pick<System, 'monotonicMs'>;
  #isLive = false;
  #count = 0;
  #sinceMs = 0;

  constructor(system: Pick<System, 'monotonicMs'>) {
    this.#system = system;
  }

  /** Whether events arrive so densely that reading pages is cheaper. */
  isDense = false;

  /** The answers until events are dense. */
  async *while(batches: AsyncIterable<readonly ReadAnswer[]>): AsyncGenerator<readonly ReadAnswer[]> {
    for await (const answers of batches) {
      yield answers;
      for (const answer of answers) this.#take(answer);
      if (this.isDense) return;
    }
  }

  #take({ caughtUp, event }: ReadAnswer): void {
    // History comes in batches anyway.
    this.#isLive ||= caughtUp !== null;
    if (!this.#isLive || event === null) return;
    this.#count += 1;
    if (this.#count % MANY !== 1) return;
    const nowMs = this.#system.monotonicMs();
    this.isDense ||= this.#count > 1 && nowMs - this.#sinceMs < MANY_WITHIN_MS;
    this.#sinceMs = nowMs;
  }
}

/**
 * Pages of new events, read every few milliseconds: a live event costs server and service three times as much as one on
 * a page. Ends when events are few.
 */
async function* pagedAnswers(
  { connection, names, system, deadlineMs }: Reader,
  progress: Progress,
  { signal, ...wanted }: SubscribeOptions,
): AsyncGenerator<readonly ReadAnswer[]> {
  const waiting = idleTimeout(system, deadlineMs, signal);
  try {
    for (let count = PAGE; count >= FEW;) {
      count = 0;
      const request = readAllMessage(progress.seen, { names, ...wanted, max: PAGE });
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
  // A page begins with the event at the position, which was yielded before.
  if (read.position <= progress.seen) return null;
  progress.seen = read.position;
  const { categories = null, types } = following;
  if (isOurs(read) && names.isWanted(read.stream, categories) && isOfTypes(read.type, types)) {
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
