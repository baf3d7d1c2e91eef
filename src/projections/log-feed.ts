/**
 * The events of all runs in the log's order, for many readers. Each reader has a separate subscription and reads at
 * its own pace, so that the feed buffers nothing for a slow reader.
 */
import type { System } from '../system/system.js';
import { ServiceStopping } from '../errors.js';
import { LogUnavailable, SubscriptionDropped } from '../eventlog/errors.js';
import type { ParentRun } from '../generated/schemas.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { RunCorrupt, isUnreadable } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import { isChildId, runIdOf, runStream } from '../run/events.js';
import { runEventOf } from '../run/stream.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { CorruptRuns } from './corrupt-runs.js';
import type { FeedCursors } from './feed-cursor.js';
import { keepSubscribed } from './projector.js';

/** Runs whose origin is cached; the feed reads others from their first events. */
const MAX_REMEMBERED = 10_000;

/** Largest number of characters of the log in memory for a reader that may stop reading. One event may be larger. */
const PAGE_CHARS = 64 * 1024;

const RUNS = runStream('').replace('-', '');

/** An event of a run, and the cursor after it. */
export interface FeedEvent {
  readonly runId: string;
  /** The run that has started it for a council, or null. */
  readonly parentRun: ParentRun | null;
  readonly event: RunEvent;
  readonly cursor: string;
}

export interface FeedOptions {
  /** Position after which the feed begins, or null for the first event. */
  readonly after: Position | null;
  /** Types of the events, or null for all. */
  readonly types: ReadonlySet<string> | null;
  /** The blueprint of the runs, or null for all runs. */
  readonly blueprintId: string | null;
  /** Called with the events in order, each exactly once; the next call waits for the returned promise. */
  readonly onEvent: (event: FeedEvent) => Promise<void>;
  /** Called with the cursor after an event that is not shown. */
  readonly onProgress: (cursor: string) => void;
  /** Ends the feed of this reader. */
  readonly signal: AbortSignal;
}

/**
 * The place where a client begins, or the reason why it cannot: its cursor is unreadable, of another log, or past the
 * end of this one.
 */
export type FeedStart =
  | {
      readonly after: Position | null;
      /** The same as a cursor, or null before the first event. */
      readonly cursor: string | null;
    }
  | 'unreadable'
  | 'elsewhere'
  | 'ahead';

export interface LogFeedDeps {
  readonly log: Pick<EventLog, 'subscribe' | 'readStream' | 'head'>;
  readonly cursors: FeedCursors;
  readonly corruptRuns: Pick<CorruptRuns, 'has' | 'mark'>;
  readonly system: Pick<System, 'after'>;
  readonly onFault: (error: unknown) => void;
  /** Whether a run is erased. A server delivers the events of removed streams until its next scavenge. */
  readonly isErased: (runId: string) => Promise<boolean>;
}

const BEGINNING = { after: null, cursor: null };

export class LogFeed {
  readonly #deps: LogFeedDeps;
  readonly #stopping = new AbortController();
  /** By run. A run never changes them. */
  readonly #origins = new BoundedMap<string, Origin>(MAX_REMEMBERED);

  constructor(deps: LogFeedDeps) {
    this.#deps = deps;
  }

  /** @param from a cursor, `head` for only later events, or null for all events @throws {LogUnavailable} */
  async start(from: string | null): Promise<FeedStart> {
    const { log, cursors } = this.#deps;
    const read = from === null || from === 'head' ? null : cursors.read(from);
    if (typeof read === 'string') return read;
    // Reads the head in any case, so that the request fails at once if the log is unreachable.
    const head = await log.head();
    if (read === null) return from === null || head === null ? BEGINNING : { after: head, cursor: cursors.of(head) };
    return head === null || read.position > head ? 'ahead' : { after: read.position, cursor: from };
  }

  /**
   * Follows the log until the signal, or until the feed stops. Resumes after a dropped subscription.
   *
   * @throws {ServiceStopping} when the feed has stopped already
   */
  async follow(options: FeedOptions): Promise<void> {
    if (this.#stopping.signal.aborted) throw new ServiceStopping();
    const signal = AbortSignal.any([options.signal, this.#stopping.signal]);
    const reader = { ...options, signal, last: options.after };
    await keepSubscribed((arrived) => this.#read(reader, arrived), {
      ...this.#deps,
      signal,
      onError(error) {
        if (!(error instanceof SubscriptionDropped || error instanceof LogUnavailable)) throw error;
      },
    });
  }

  /** Ends every feed. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Delivers the events of one subscription to the reader, and calls `arrived` after each. */
  async #read(reader: Reader, arrived: () => void): Promise<void> {
    const { log, cursors } = this.#deps;
    const { last: after, types, signal } = reader;
    const wanted = { categories: [RUNS], pageChars: PAGE_CHARS, ...(types !== null && { types: [...types] }) };
    let isHistory = true;
    for await (const followed of log.subscribe(after, { ...wanted, signal })) {
      if (followed.kind === 'caughtUp') isHistory = false;
      if (followed.kind === 'caughtUp') continue;
      const { position } = followed.kind === 'event' ? followed.event : followed;
      // A log delivers at least once.
      if (reader.last !== null && position <= reader.last) continue;
      const isShown = followed.kind === 'event' && !(isHistory && (await this.#isErased(followed.event)));
      const shown = isShown ? await this.#shown(followed.event, reader) : null;
      if (shown === null) reader.onProgress(cursors.of(position));
      else await reader.onEvent({ ...shown, cursor: cursors.of(position) });
      reader.last = position;
      arrived();
    }
  }

  async #isErased({ stream }: RecordedEvent): Promise<boolean> {
    const runId = runIdOf(stream);
    return runId !== null && (await this.#deps.isErased(runId));
  }

  /** An event as it is shown, or null if the reader excludes its run or the run is corrupt. */
  async #shown(recorded: RecordedEvent, { blueprintId }: Reader): Promise<Omit<FeedEvent, 'cursor'> | null> {
    const { corruptRuns } = this.#deps;
    const runId = runIdOf(recorded.stream);
    if (runId === null || corruptRuns.has(runId)) return null;
    try {
      const isNeeded = blueprintId !== null || isChildId(runId);
      const { parentRun = null, ...origin } = isNeeded ? await this.#originOf(runId) : { blueprintId };
      return origin.blueprintId === blueprintId || blueprintId === null
        ? { runId, parentRun, event: runEventOf(recorded) }
        : null;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      if (error instanceof RunCorrupt) corruptRuns.mark(error);
      return null;
    }
  }

  /** @throws {RunCorrupt} */
  async #originOf(runId: string): Promise<Origin> {
    const origin = this.#origins.get(runId) ?? (await this.#readOrigin(runId));
    this.#origins.set(runId, origin);
    return origin;
  }

  async #readOrigin(runId: string): Promise<Origin> {
    for await (const recorded of this.#deps.log.readStream(runStream(runId), { max: 1 })) {
      const first = runEventOf(recorded);
      if (first.type !== 'RunRequested') break;
      const { blueprintId, parentRun = null } = first.data;
      return { blueprintId, parentRun };
    }
    throw new RunCorrupt({ runId, seq: 0, reason: 'a run begins with RunRequested' });
  }
}

/** What the first event of a run says of it. */
interface Origin {
  readonly blueprintId: string | null;
  readonly parentRun?: ParentRun | null;
}

/** A reader, and the position of its last event. */
interface Reader extends FeedOptions {
  last: Position | null;
}
